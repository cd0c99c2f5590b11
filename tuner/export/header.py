"""A C header with the rules, for programs that choose methods themselves."""

from tuner.domain.tables import Table
from tuner.export.form import Form
from tuner.export.text import render, with_reasons
from tuner.models.system import SystemModel


def _text(table: Table, model: SystemModel | None) -> str:
    return render("header.h.j2", table, rules=with_reasons(table))


FORM = Form("C header", "switchpoint_table.h", _text)
