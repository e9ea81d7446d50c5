"""Disputes of labels: the form on a trajectory, the public list, what maintainers decide."""
