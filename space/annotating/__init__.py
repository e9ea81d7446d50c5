"""Annotating and discussing: pages and REST for people who label, blind to what others said."""
