"""The design of the README, to watch: billed by request, provisioned, and with a prefix."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from stator import Design, ProvisionedCapacity, TableSettings
from stator.design.export.source import ExportSource
from stator.ops.dashboards.monitored_design import MonitoredDesign

README = Path(__file__).parents[3] / "README.md"


@cache
def program() -> dict[str, Any]:
    """The names that the README's program defines."""
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    module = ModuleType("readme_program")
    sys.modules[module.__name__] = module  # where dataclasses look their annotations up
    exec(compile(found[1], str(README), "exec"), vars(module))
    return vars(module)


def shop(capacity: ProvisionedCapacity | None = None) -> Design:
    names = program()
    user, order = names["User"], names["Order"]
    return Design(
        "shop",
        [user, order],
        [names["orders_of_user"], names["user_by_email"]],
        volumes={user: 200_000, order: 2_400_000},
        sizes={user: 400, order: 300},
        settings=None if capacity is None else TableSettings(capacity=capacity),
    )


def watched(capacity: ProvisionedCapacity | None = None, **limits: Any) -> MonitoredDesign:
    design = shop(capacity)
    return MonitoredDesign(ExportSource(design, design.plan()), **limits)
