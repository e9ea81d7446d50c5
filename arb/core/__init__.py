"""The parts that every package uses: vocabulary, suites, prediction files and settings."""

__version__ = "0.1.0"
