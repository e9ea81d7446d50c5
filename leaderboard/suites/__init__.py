"""Importers of other benchmarks of judges, each from a checkout of its repository."""
