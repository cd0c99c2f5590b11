"""Presents what is known: rich on a terminal, plain lines elsewhere, or JSON."""
