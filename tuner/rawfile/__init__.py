"""Raw files: their lines, how they are read and kept, and their ingest into the store."""
