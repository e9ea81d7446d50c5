"""The prediction file: one row per trajectory with a judge's verdicts, as JSONL, CSV or Parquet.

`limits` how much of a file is taken in, `read` bytes to a typed table (`container` which format, `jsonl`,
`csv_records`, `parquet` one format each, `parquet_apart` the last in a process of its own, `raw` what they
hand on, `cells` and `columns` the words), `table` those columns, `check` them against a suite's split
(`identity` the ids), `findings` what is said about a file, `write` and `template` the way out. No label is
read anywhere in here.
"""
