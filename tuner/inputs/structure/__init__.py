"""The messages of a sparse matrix's product with a vector, counted from the pattern without MPI.

Every count is defined as in the library (swp_plan_statistics), and equals what it reports.
"""
