"""What a sparse matrix's product with a vector sends, counted from the pattern without MPI.

Every count is defined as the library defines it (swp_plan_statistics), and equals what it reports.
"""
