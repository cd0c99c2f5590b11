"""The method table that the library reads (docs/reference/table.md)."""

from tuner.domain.tables import Table
from tuner.export.form import Form
from tuner.export.model_lines import model_lines
from tuner.export.text import render, with_reasons
from tuner.models.system import SystemModel


def _text(table: Table, model: SystemModel | None) -> str:
    return render("table.j2", table, rules=with_reasons(table), model=model_lines(model))


FORM = Form(
    "Switchpoint table",
    "switchpoint.table",
    _text,
    use=("export SWITCHPOINT_TABLE=$PWD/switchpoint.table",),
    knows_off=True,
)
