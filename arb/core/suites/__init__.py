"""The shipped suites, each in a folder, and the readers of profile and questions in ``suite.toml``."""
