"""Advice for one application: its profile, what a table says of its calls, and a proven gain."""
