"""The jinja2 templates of all files that Switchpoint writes, and their one environment."""

from __future__ import annotations

import json
from functools import cache, partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2


def render(template: str, **values: Any) -> str:
    """Return the text of a template; all values that it uses must be given."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> jinja2.Environment:
    import jinja2  # here, because every command imports this module, but few write a file

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("templates", ""),
        undefined=jinja2.StrictUndefined,
        autoescape=jinja2.select_autoescape(["xml.j2"]),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "c_string": _c_string,
        "c_real": _c_real,
        "c_whole": _c_whole,
        "comment": _comment,
        "line": _line,
        "literal": partial(json.dumps, ensure_ascii=False),
        "range": _range,
    }
    return environment


def _line(value: Any) -> str:
    """Return one printable line without double quotes, at most 1000 letters long."""
    text = " ".join(str(value).replace('"', "'").split())
    return "".join(c for c in text if c.isprintable())[:1000]


def _comment(value: Any) -> str:
    return _line(value).replace("*/", "* /").replace("/*", "/ *")


def _c_string(value: str) -> str:
    return json.dumps(value)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6f}".rstrip("0").rstrip(".")


def _range(low: float | None, high: float | None) -> str:
    """Return an interval in the table's grammar, which includes both ends."""
    if low is not None and low == high:
        return _number(low)
    return f"{_number(low or 0)}:{'*' if high is None else _number(high)}"


def _c_whole(low: int | None, high: int | None) -> str:
    """Return both ends in C. Only the unbounded interval contains -1, the unknown value."""
    first = "INT64_MIN" if not low and high is None else f"INT64_C({low or 0})"
    return f"{first}, {'INT64_MAX' if high is None else f'INT64_C({high})'}"


def _c_real(low: float | None, high: float | None) -> str:
    first = "-DBL_MAX" if not low and high is None else _number(low or 0)
    return f"{first}, {'DBL_MAX' if high is None else _number(high)}"
