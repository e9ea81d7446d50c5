"""The parts that every package uses: vocabulary, suites, prediction files and settings."""
