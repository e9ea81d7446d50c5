import arb.core  # noqa: F401 - refuses a Python that is too old, before a missing library does
