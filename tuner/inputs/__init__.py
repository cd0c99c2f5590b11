"""The inputs of an exchange: matrices, their partitions, patterns."""
