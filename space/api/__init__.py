"""The REST API (the board, checking, estimating and submitting) and its documentation at ``/api``."""
