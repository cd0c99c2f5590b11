"""Named scales become processes on the processors that a system has."""

import pytest

from checks.scales import ScaleError, resolve


@pytest.mark.parametrize(
    ("scale", "cores", "max_nodes", "procs", "ppn"),
    [
        ("half_node", 48, 1, 24, 24),
        ("1_node", 2, 1, 2, 2),
        ("4_nodes", 16, 4, 64, 16),
        ("1_node_oversubscribed_by_1", 2, 1, 3, 3),
        ("1_node_oversubscribed_3x", 2, 1, 6, 6),
        ("1_node_oversubscribed", 2, 1, 8, 8),
    ],
)
def test_a_scale_follows_the_system(scale, cores, max_nodes, procs, ppn):
    layout = resolve(scale, cores, max_nodes, oversubscribed=True)
    assert (layout.procs, layout.ppn) == (procs, ppn)


@pytest.mark.parametrize(
    ("scale", "cores", "max_nodes", "reason"),
    [
        ("2_nodes", 16, 1, "needs 2 nodes; the partition has 1"),
        ("half_node", 2, 1, "nothing to exchange"),
        ("1_node", 1, 1, "nothing to exchange"),
        ("1_node", 0, 1, "states no processors"),
        ("1_node_oversubscribed", 64, 1, "256 processes on 64 cores"),
        ("1_node_oversubscribed_3x", 3, 1, "as many processes as 1_node_oversubscribed"),
    ],
)
def test_a_scale_that_does_not_fit_says_why(scale, cores, max_nodes, reason):
    with pytest.raises(ScaleError, match=reason):
        resolve(scale, cores, max_nodes, oversubscribed=True)


def test_cores_are_oversubscribed_only_where_that_is_asked_for():
    with pytest.raises(ScaleError, match='must have "oversubscribed": True'):
        resolve("1_node_oversubscribed_by_1", 2, 1)
