"""Sparse matrices as inputs: Matrix Market files, generated matrices, row partitions."""
