"""Labelling a suite: who annotates what, the answers as they come, what was decided of them. All records."""
