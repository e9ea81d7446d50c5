"""Build the dataset from recorded runs, verify it and publish it; see `arb data --help`."""
