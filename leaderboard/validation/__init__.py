"""Measure judges on a table of labels and verdicts, without a suite: ``arb validate``."""
