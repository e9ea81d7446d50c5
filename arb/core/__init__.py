"""What every package shares: the vocabulary, suites, prediction files, settings. Imports nothing of ours."""
