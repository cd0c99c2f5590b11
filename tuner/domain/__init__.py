"""What is measured and decided: operations, launches, cells, rules. No input or output."""
