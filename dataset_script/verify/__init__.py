"""Verify a dataset folder before or after it is published."""
