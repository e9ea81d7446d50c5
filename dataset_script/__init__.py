"""Build the dataset from recorded runs, verify it and publish it; see `arb data --help`."""

import arb.core  # noqa: F401 - refuses a Python that is too old, before a missing library does
