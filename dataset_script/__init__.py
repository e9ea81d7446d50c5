"""Build the dataset from recorded runs, verify it and publish it; see `python -m dataset_script --help`."""
