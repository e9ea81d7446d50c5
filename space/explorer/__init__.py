"""The trajectories explorer: what can be browsed, one trajectory as a story, its pictures and verdicts."""
