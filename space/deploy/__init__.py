"""Putting the Space on the Hub: what is sent, what is refused, what its maintainer has to set."""
