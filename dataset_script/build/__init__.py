"""Build a dataset folder from recorded runs."""
