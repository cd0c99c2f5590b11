"""The kinds of records that are not cases, one file each; the store has a table for each."""

from tuner.rawfile.kinds import overlap, probe, soak

KINDS = {kind.line: kind for kind in (overlap.KIND, probe.KIND, soak.KIND)}
"""The kinds by the type of their line."""
