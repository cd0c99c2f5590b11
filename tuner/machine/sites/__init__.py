"""Configurations of sites: made from what a site has, and checked."""
