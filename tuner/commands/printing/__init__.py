"""Output of results: rich on a terminal, plain lines elsewhere, or JSON."""
