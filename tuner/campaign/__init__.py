"""Campaigns: what they measure, in which order, and how ReFrame runs them."""
