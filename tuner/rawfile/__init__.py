"""Raw files: their lines, reading them, keeping them, and taking them into the store."""
