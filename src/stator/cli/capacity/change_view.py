"""Shows a staged change of capacity: its calls in words and exactly, and what AWS would refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from stator.model.quantities import plural
from stator.ops.capacity.staged_change import StagedCall, StagedChange


def change_lines(changes: Sequence[StagedChange], hint: str) -> Iterator[RenderableType]:
    """Yield lines that say what staged changes do. ``hint`` says how to carry them out."""
    for change in changes:
        table = change.before.table
        if not change.calls:
            yield Text.assemble((table, "bold"), " needs no change")
            continue
        yield Text.assemble((table, "bold"), f" needs {plural(len(change.calls), 'call')}:")
        for call in change.calls:
            yield from _call(call)
        for refusal in change.refusals:
            yield Text(f"  refused now: {refusal}", "red")
    if hint and any(each.calls for each in changes):
        yield Text(f"\n{hint}", "dim")


def _call(call: StagedCall) -> Iterator[RenderableType]:
    yield Text(f"  {call.why}", "cyan")
    yield Padding(Text(f"{call.service} {call.operation}", "bold"), (0, 0, 0, 4))
    text = json.dumps(call.parameters, ensure_ascii=False)
    yield Padding(Text(text, "dim"), (0, 0, 0, 4))
