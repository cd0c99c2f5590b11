"""Tables of other systems: files that carry them, their keeping, and what a system borrows."""
