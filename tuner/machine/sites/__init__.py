"""Configurations of sites: made from what is there, and checked."""
