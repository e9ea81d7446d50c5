"""The engine: every judge's calls made fast, once, and within the limits."""
