"""The dashboard: what was measured and what was chosen, in a browser."""
