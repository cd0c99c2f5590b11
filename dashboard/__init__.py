"""The dashboard: measurements and chosen methods in a browser."""
