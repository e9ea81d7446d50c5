"""What every package shares. Imports nothing of ours.

The vocabulary, the suites and the builder of the published dataset. Imports nothing of ours.
"""
