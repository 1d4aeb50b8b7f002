"""Formats that are rows: of a CSV, JSON lines or Parquet file, or lines of text."""
