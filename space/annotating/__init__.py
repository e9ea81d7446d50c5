"""Annotating and discussing: pages and REST for people who label, blind to labels, verdicts and each other."""
