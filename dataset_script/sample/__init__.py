"""The shipped sample: its data, its annotations, and the kinds of failures in its runs."""
