"""Measured traffic: the calls of a file, by pattern and second, with the values in their keys.

A file is CSV with a header, or JSON lines. Each row has a ``time`` (ISO 8601, seconds, or HH:MM:SS)
and a ``pattern``, or an ``entity`` and an ``operation`` such as PutItem. ``count`` says how many
calls the row stands for, 1 by default. Other columns named like a field or an argument of the
pattern hold values of keys. Columns with other names are ignored.

    time,pattern,tenant_id,count
    2026-11-19T10:00:00Z,orders_of_tenant,acme,180
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from stator.design.plan.plan import PatternPlan
from stator.design.simulation.call_shapes import CallShape, CallShapes
from stator.design.simulation.flows import Flow, MeasuredFlow
from stator.design.simulation.value_groups import FEW_VALUES, ValueGroup
from stator.errors import ConfigurationError

_OPERATIONS: Final = {
    "putitem": "PutItem", "create": "PutItem", "put": "PutItem",
    "updateitem": "UpdateItem", "update": "UpdateItem",
    "deleteitem": "DeleteItem", "delete": "DeleteItem",
    "getitem": "GetItem", "get": "GetItem", "query": "Query",
}  # fmt: skip
_RESERVED: Final = frozenset({"time", "pattern", "entity", "operation", "count"})
_MOST_SECONDS: Final = 7 * 86_400

_Values = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Calls:
    """The calls of one pattern, or of one operation on an entity.

    The calls are counted in two ways: by second, and by minute and key values.
    """

    by_second: Counter[int] = field(default_factory=Counter)
    by_values: dict[int, Counter[_Values]] = field(default_factory=dict)


class MeasuredTraffic:
    """Measured calls, read from a file or from rows.

    Each row names a pattern, or an entity and an operation.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], where: str = "row") -> None:
        self._where = where
        self._calls: dict[tuple[str, str], _Calls] = {}
        times: list[tuple[float, tuple[str, str], _Values, float]] = []
        for number, row in enumerate(rows, 1):
            times.append(self._row(row, f"{where} {number}"))
        if not times:
            raise ConfigurationError(
                f"{where}: there are no calls to replay",
                hint="each row needs a time and a pattern",
            )
        self._first = min(time for time, *_ in times)
        for time, subject, values, count in times:
            second = math.floor(time - self._first)
            if second > _MOST_SECONDS:
                raise ConfigurationError(
                    f"{where}: the calls span more than a week", hint="replay a part of the file"
                )
            calls = self._calls.setdefault(subject, _Calls())
            calls.by_second[second] += count  # type: ignore[assignment]
            minute = calls.by_values.setdefault(second // 60, Counter())
            minute[values] += count  # type: ignore[assignment]

    @classmethod
    def from_file(cls, path: Path | str) -> MeasuredTraffic:
        """Read a file: JSON lines if its name ends with .jsonl or .ndjson, otherwise CSV."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise ConfigurationError(
                f"cannot read {path}: {reason}", hint="name a CSV or JSON lines file"
            ) from None
        if file.suffix in (".jsonl", ".ndjson"):
            return cls(_json_rows(text, str(path)), f"{path}: row")
        return cls(csv.DictReader(text.splitlines()), f"{path}: row")

    @property
    def seconds(self) -> int:
        """The number of seconds from the first to the last call, rounded up to whole minutes."""
        last = max(second for calls in self._calls.values() for second in calls.by_second)
        return 60 * (last // 60 + 1)

    def flows(self, shapes: CallShapes, seconds: int) -> list[Flow]:
        """Return a flow for each pattern, or entity and operation, that the rows name.

        ``shapes`` makes the call shapes, and ``seconds`` is the length of the run. Raises
        ConfigurationError for a pattern or entity that the design does not have.
        """
        return [
            self._flow(subject, calls, shapes, seconds)
            for subject, calls in sorted(self._calls.items())
        ]

    def _row(
        self, row: Mapping[str, Any], where: str
    ) -> tuple[float, tuple[str, str], _Values, float]:
        time = _seconds(row.get("time"), where)
        pattern, entity, operation = (row.get(each) for each in ("pattern", "entity", "operation"))
        if pattern:
            subject = (str(pattern), "")
        elif entity and operation:
            subject = (str(entity), str(operation))
        else:
            raise ConfigurationError(
                f"{where} names no pattern",
                hint="add a column pattern, or the columns entity and operation",
            )
        given = row.get("count")
        try:
            count = 1.0 if given in (None, "") else float(str(given))
        except ValueError:
            count = math.nan
        if not (math.isfinite(count) and count >= 0):
            raise ConfigurationError(
                f"{where}: count is {given!r}, which is not a number of calls",
                hint="use a number of 0 or more",
            )
        values = tuple(
            sorted(
                (name, str(value))
                for name, value in row.items()
                if name is not None and name not in _RESERVED and value not in (None, "")
            )
        )
        return time, subject, values, count

    def _flow(
        self, subject: tuple[str, str], calls: _Calls, shapes: CallShapes, seconds: int
    ) -> Flow:
        pattern = _pattern_of(subject, shapes, self._where)
        fields = shapes.fields_of(pattern.name)
        counts = [0.0] * min(seconds, max(calls.by_second) + 1)
        for second, count in calls.by_second.items():
            if second < len(counts):
                counts[second] = float(count)
        ranks = self._ranks(calls, fields, shapes)
        found: list[CallShape] = []
        for minute in range(max(calls.by_values) + 1):
            measured = calls.by_values.get(minute)
            if measured is None:
                found.append(found[-1] if found else shapes.measured(pattern.name, None))
                continue
            groups = _groups(measured, fields, ranks)
            found.append(shapes.measured(pattern.name, groups))
        return MeasuredFlow(found, counts)

    @staticmethod
    def _ranks(
        calls: _Calls, fields: Mapping[str, str], shapes: CallShapes
    ) -> dict[tuple[str, str], int]:
        """Return a rank for each measured value, by field and value.

        The most frequent values have the lowest ranks. ``shapes.texts`` gets the value of each new
        rank.
        """
        totals: Counter[tuple[str, str]] = Counter()
        for minute in calls.by_values.values():
            for values, count in minute.items():
                for name, value in values:
                    if name in fields:
                        totals[fields[name], value] += count
        ranks: dict[tuple[str, str], int] = {}
        known = {(name, text): rank for (name, rank), text in shapes.texts.items()}
        for (name, value), _ in sorted(totals.items(), key=lambda each: (-each[1], each[0])):
            if (name, value) not in known:
                rank = sum(1 for other, _ in shapes.texts if other == name)
                shapes.texts[name, rank] = value
                known[name, value] = rank
            ranks[name, value] = known[name, value]
        return ranks


def _groups(
    measured: Counter[_Values], fields: Mapping[str, str], ranks: Mapping[tuple[str, str], int]
) -> tuple[ValueGroup, ...] | None:
    """Group one minute's calls by the values in their partition keys, the largest group first.

    ``measured`` counts the calls by the values in their rows. ``fields`` maps each column that
    holds key values to its field. ``ranks`` has the rank of each value. Calls beyond the first
    ``FEW_VALUES`` groups form one group without ranks. Returns None if no call has a key value.
    """
    by_ranks: dict[tuple[tuple[str, int], ...], float] = {}
    for values, count in measured.items():
        known = tuple(
            sorted(
                (fields[name], ranks[fields[name], text]) for name, text in values if name in fields
            )
        )
        by_ranks[known] = by_ranks.get(known, 0.0) + count
    total = sum(by_ranks.values())
    if total <= 0 or set(by_ranks) == {()}:
        return None
    ranked = sorted(by_ranks.items(), key=lambda each: (-each[1], each[0]))
    first = ranked[:FEW_VALUES]
    groups = [ValueGroup(count / total, found) for found, count in first]
    rest = 1.0 - sum(group.share for group in groups)
    return tuple([*groups, ValueGroup(rest)] if rest > 1e-9 else groups)


def _pattern_of(subject: tuple[str, str], shapes: CallShapes, where: str) -> PatternPlan:
    name, operation = subject
    patterns = shapes.plan.patterns
    if not operation:
        for each in patterns:
            if each.name == name:
                return each
        raise ConfigurationError(
            f"{where}: the design has no pattern {name}",
            hint=f"it has {', '.join(each.name for each in patterns) or 'none'}",
        )
    wanted = _OPERATIONS.get(operation.lower())
    fitting = [
        each
        for each in patterns
        if any(step.operation == wanted and name in step.entities for step in each.steps)
    ]
    if not fitting:
        raise ConfigurationError(
            f"{where}: no pattern of the design sends {operation} for {name}",
            hint="name the pattern in a column of its own",
        )
    return min(fitting, key=lambda each: len(each.steps))


def _json_rows(text: str, where: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise ConfigurationError(
                f"{where}: line {number} is not a JSON object", hint="write one object a line"
            )
        yield row


def _seconds(given: Any, where: str) -> float:
    text = str(given or ("0" if given == 0 else "")).strip()
    try:
        found = float(text)
    except ValueError:
        parts = text.split(":")
        try:
            if len(parts) in (2, 3) and all(part.isdigit() for part in parts):
                hours, minutes, seconds = (*map(int, parts), 0)[:3]
                return float(hours * 3600 + minutes * 60 + seconds)
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ConfigurationError(
                f"{where}: time is {given!r}, which is not a time",
                hint="write 2026-11-19T10:00:00Z, 10:00:00, or a number of seconds",
            ) from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.timestamp()
    if not math.isfinite(found):
        raise ConfigurationError(
            f"{where}: time is {given!r}, which is not a time", hint="use a number of seconds"
        )
    return found
