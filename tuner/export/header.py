"""A C header with the rules, for programs that choose methods themselves."""

from tuner.export.form import Form
from tuner.export.text import render, with_reasons

FORM = Form(
    "C header",
    "switchpoint_table.h",
    lambda table, model: render("header.h.j2", table, rules=with_reasons(table)),
)
