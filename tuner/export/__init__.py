"""Tables in the forms that applications and MPI libraries read, a file a form."""
