"""Annotation of a suite: assignments, answers and decisions, all of them events."""
