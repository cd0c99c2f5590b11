"""Tables in the forms that applications and MPI libraries read, one file per form."""

FORM_NAMES = ("table", "header", "json", "openmpi", "han", "mpich", "intelmpi")
"""The names of the forms of tables; here, as commands name them without loading the forms."""
