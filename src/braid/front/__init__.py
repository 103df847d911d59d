"""What users import: `query` and its `start`, the `Run` that comes of it, and sinks."""
