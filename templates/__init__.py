"""The jinja2 templates of exported tables and headers, and of simulated machines."""
