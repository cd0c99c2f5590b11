"""The state of a page in its URL."""

from dataclasses import dataclass

import pytest

from dashboard.choice import CaseQuery
from dashboard.pages.choose import ChooseQuery
from dashboard.pages.table import FormQuery
from dashboard.query import INTEGER, MalformedError, Query, UnknownError, choose, parameter
from tuner.domain.records import NAME, PATTERN_SPEC


@dataclass(frozen=True)
class SampleQuery(Query):
    system: str = parameter("s", NAME)
    pattern: str = parameter("p", PATTERN_SPEC)
    size: str = parameter("b", INTEGER)


def test_a_query_survives_its_url() -> None:
    query = SampleQuery(system="local:cpu & more+1 é", pattern="random:degree=6,seed=1", size="8")
    assert SampleQuery.parse(query.search()) == query


def test_urls_stay_short_and_readable() -> None:
    query = SampleQuery(pattern="random:degree=6,seed=1", size="8")
    assert query.search() == "?p=random:degree=6,seed=1&b=8"
    assert SampleQuery().search() == ""
    assert SampleQuery.parse("?") == SampleQuery.parse("") == SampleQuery()


@pytest.mark.parametrize(
    "search",
    [
        "?b=eight",
        "?b=-1",
        "?b=1&b=2",
        "?x=1",
        "?b",
        "?s=%00",
        "?s=%ff",
        "?s=<script>",
        "?s=" + "a" * 201,
        "?p=../../etc/passwd",
        "?b=1&&&&&&",
        "?b=\u0661",
    ],
)
def test_malformed_queries_are_refused(search: str) -> None:
    with pytest.raises(MalformedError):
        SampleQuery.parse(search)


def test_a_value_that_is_none_of_some_words_is_told_which_there_are() -> None:
    with pytest.raises(MalformedError, match=r"^format must be one of table, header, json"):
        FormQuery.parse("?format=nope")


@pytest.mark.parametrize("value", [None, 3, ["8"], {"b": "8"}, True])
def test_values_from_callbacks_are_refused_unless_text(value: object) -> None:
    with pytest.raises(MalformedError):
        SampleQuery(size=value)  # type: ignore[arg-type]


def test_a_link_must_name_what_exists_and_a_filter_gives_way() -> None:
    assert choose(["a", "b"], "b", "system", strict=True) == "b"
    assert choose(["a", "b"], "", "system", strict=True) == "a"
    assert choose(["a", "b"], "c", "system", strict=False) == "a"
    with pytest.raises(UnknownError, match="no system 'c'"):
        choose(["a", "b"], "c", "system", strict=True)
    with pytest.raises(UnknownError):
        choose([], "", "system", strict=False)


@pytest.mark.parametrize(
    ("wanted", "layouts"),
    [("2x4", ["8@4x2-window", "8@2x4-window-over"]), ("8@2x4-window", ["4x2", "2x4"])],
)
def test_a_layout_stands_for_that_of_another_page(wanted: str, layouts: list[str]) -> None:
    assert choose(layouts, wanted, "layout", strict=False) == layouts[1]
    with pytest.raises(UnknownError):
        choose(layouts, wanted, "layout", strict=True)


def test_a_choice_is_carried_to_pages_that_know_less_of_it() -> None:
    case = "s=local&o=bcast&p=blocks%3Aroot%3D0&r=8%402x4-window&k=1"
    carried = CaseQuery.carried(f"?{case}")
    assert carried == CaseQuery("local", "", "bcast", "blocks:root=0", "8@2x4-window")
    assert ChooseQuery.carried(f"?{case}") == ChooseQuery("local", "bcast", "8@2x4-window")
    assert ChooseQuery.carried("?s=local&o=bcast") is None
    with pytest.raises(MalformedError):
        CaseQuery.parse(f"?{case}")
