"""The jinja2 templates of exported tables, headers and site files."""
