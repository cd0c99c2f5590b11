"""The method table that the library reads (docs/reference/table.md)."""

from tuner.export.form import Form
from tuner.export.model_lines import model_lines
from tuner.export.text import render, with_reasons

FORM = Form(
    "Switchpoint table",
    "switchpoint.table",
    lambda table, model: render(
        "table.j2", table, rules=with_reasons(table), model=model_lines(model)
    ),
    use=("export SWITCHPOINT_TABLE=$PWD/switchpoint.table",),
    knows_off=True,
)
