"""The parts that every package uses: vocabulary, suites, prediction files and settings."""

__version__ = "1.0.0"
