"""A suite of one's own from recorded runs: which runs can be used, their split, the files of its folder."""
