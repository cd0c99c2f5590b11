"""`python -m switchpoint` is the command `switchpoint`."""

from switchpoint import main

main()
