"""Parametric models of communication: fitted to probes, and composed to predict methods.

No input or output. What the data cannot tell is a NotIdentified with its reason, never a number.
"""
