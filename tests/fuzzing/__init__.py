"""Inputs of any bytes for every parser, in C and in Python; docs/reference/reliability.md."""
