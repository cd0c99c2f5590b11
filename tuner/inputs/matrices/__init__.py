"""Sparse matrices as inputs: Matrix Market files, what is made to write some, row partitions."""
