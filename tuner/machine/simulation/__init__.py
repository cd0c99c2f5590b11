"""Simulated machines: SimGrid's SMPI runs the kernels on the model of a machine.

Nothing is measured there: times follow from the parameters of a network and the routes of a
topology, and are the same to the last digit at every run.
"""
