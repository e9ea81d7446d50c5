"""Putting the Space on the Hub."""
