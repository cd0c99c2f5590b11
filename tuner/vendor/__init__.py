"""A table's choices among an MPI library's own algorithms, in the form that the library reads."""
