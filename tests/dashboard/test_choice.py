"""Which system a page begins with, and what it is called."""

import pandas as pd

from dashboard.choice import newest_first, system_options


def test_real_machines_come_first_and_the_others_are_marked() -> None:
    systems = pd.DataFrame(
        [
            ("a", "local:cpu", "mpich", "Xeon", "2026-01-01"),
            ("b", "simulated:torus-4x4x2", "smpi", "simulated", "2026-01-03"),
            ("c", "local:cpu+block", "mpich", "Xeon", "2026-01-04"),
            ("d", "local:cpu", "openmpi", "Xeon", "2026-01-02"),
        ],
        columns=["system", "name", "environment", "cpu_model", "last_date"],
    )
    assert system_options(newest_first(systems)) == [
        ("d", "local:cpu, openmpi"),
        ("a", "local:cpu, mpich"),
        ("c", "local:cpu+block, mpich (virtual nodes)"),
        ("b", "simulated:torus-4x4x2, smpi (simulated)"),
    ]
