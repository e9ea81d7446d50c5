"""Check a published folder."""
