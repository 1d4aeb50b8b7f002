"""Tables of labels: CSV, TSV, spreadsheets, Parquet, JSON lines and DataFrames."""
