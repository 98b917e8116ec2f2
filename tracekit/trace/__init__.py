"""The trace format: rows, Parquet schema, writer, reader, importers."""
