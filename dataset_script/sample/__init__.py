"""The shipped sample: its data, its annotations, and the runs whose failures are meant."""
