"""The package that a wheel installs: all parts lie in it as they lie in a checkout.

They import each other by the names that they have there, so importing this package puts its
directory on Python's path. Only programs that import it see these names, before their own.
"""

import sys
from pathlib import Path

_HERE = str(Path(__file__).resolve().parent)
if _HERE not in sys.path:  # ReFrame imports this package while it counts on the path's length
    sys.path.insert(0, _HERE)


def main() -> None:
    """Run the command `switchpoint`."""
    from tuner.cli import main as command

    command()
