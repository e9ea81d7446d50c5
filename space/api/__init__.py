"""REST for everybody: the board, checking and submitting, and the page ``/api``."""
