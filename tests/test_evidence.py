"""Decisions in words."""

from tests.test_rules import point
from tuner.selection.evidence import settlement, verdict


def test_a_filled_size_is_not_called_faster_while_its_method_waits_for_a_soak() -> None:
    waits = point("direct", status="unsoaked")._replace(challenger="neighbor")
    filled = waits._replace(filled=True, ratio_high=1.2, more_launches=2, more_s=3.0)
    assert verdict(waits) == "direct; neighbor is 1.82 to 2.22 x faster but waits for its soak"
    assert verdict(filled) == "direct; neighbor, as at the sizes around, waits for its soak"
    found = settlement([waits, filled])
    assert (found.settled, found.filled, found.more_s) == (1, 1, 3.0)
