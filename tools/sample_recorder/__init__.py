"""Record the shipped sample: scripted agents on five small sites, in a real browser."""
