"""Parametric models of communication: fitted to probes, and composed to predict methods.

A parameter that the data do not show is a NotIdentified with its reason, never a number.
"""
