"""The shipped suites, each in its folder, and readers of the profile and questions in ``suite.toml``."""
