"""The notebook runs from top to bottom, and each cell ends with a table or with nothing."""

from __future__ import annotations

import ast
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parent.parent.parent / "examples" / "tour.ipynb"


def cells(kind: str) -> list[dict[str, Any]]:
    return [each for each in json.loads(NOTEBOOK.read_text())["cells"] if each["cell_type"] == kind]


def run(code: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does, and return the value of its last line if that is one."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, NOTEBOOK.name, "exec"), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)


def test_every_result_of_the_notebook_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = ModuleType("notebook")  # dataclasses look their module up
    monkeypatch.setitem(sys.modules, notebook.__name__, notebook)
    names = notebook.__dict__
    shown = {}
    with ExitStack() as stack:
        stack.callback(lambda: [names[each].close() for each in ("db", "engine") if each in names])
        for cell in cells("code"):
            code = "".join(cell["source"])
            shown[code.splitlines()[-1]] = run(code, names)._repr_html_()
    assert all(table.startswith("<table><caption>") for table in shown.values())
    assert "orders_of_customer" in shown["shop.plan()"]
    assert "<th>key</th>" in shown['orders_of_customer("c1").explain(shop)']
    assert "Page: 5 items; more follow" in shown['db.page(orders_of_customer("c1"), limit=5)']
    assert "10 items" in shown["orders"]
    assert "<th>written</th><td>100</td>" in shown["report"]
    [rows] = [table for line, table in shown.items() if line.startswith("cities.on(db)")]
    assert "<td>6</td><td>195</td>" in rows, rows


def test_the_notebook_is_stored_without_outputs() -> None:
    for cell in cells("code"):
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
    assert all(
        len(line) <= 101
        for kind in ("code", "markdown")
        for cell in cells(kind)
        for line in cell["source"]
    )
