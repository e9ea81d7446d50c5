"""What a suite with private labels tells of a scored file, so that the labels stay in: pure functions."""
