"""Configurations of sites: made from what is detected at a site, and checked."""
