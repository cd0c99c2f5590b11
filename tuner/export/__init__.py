"""Tables in the forms that applications and MPI libraries read, one file per form."""
