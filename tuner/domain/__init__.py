"""The operations, launches, cells and rules that are measured and decided. No input or output."""
