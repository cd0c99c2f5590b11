"""The way from the cells of a system to the rules of its table."""
