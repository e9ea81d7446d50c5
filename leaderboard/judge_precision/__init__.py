"""The metric, in the layout that ``evaluate.load`` expects. All scores are computed here."""
