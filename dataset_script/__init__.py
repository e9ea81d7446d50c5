"""The dataset: built from recorded runs, verified, published. `python -m dataset_script --help`."""
