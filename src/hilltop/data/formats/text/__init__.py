"""What formats share: rows and records of text, CSV, JSON and Parquet, and checks of names."""
