"""The documentation as a site that needs no server and no network, and the man pages.

`python -m docs.site [PLACE]`, or `make site`, writes PLACE/html and PLACE/man.
"""
