"""The way from cells to the rules of a table; comparisons, guidelines, products, next steps."""
