"""Checks of a published folder."""
