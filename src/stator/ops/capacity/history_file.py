"""A history of use as a CSV or Parquet file: one row for each minute of a table or index.

    time,table,index,read_units,write_units,read_throttles,write_throttles
    2026-11-02T00:00:00Z,orders,,812,240,0,0

``read_units`` and ``write_units`` are the units consumed in the row's period (CloudWatch's Sum).
Optional columns are the throttle events, ``provisioned_read`` and ``provisioned_write`` (units a
second, 0 or empty while on-demand), ``size_bytes``, and ``read_requests`` and ``write_requests``
(requests in the period; without them a throttled request counts as one unit). A missing minute is
an idle minute. The period is a minute, or five if no two rows of a table are closer.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, Final

from stator.errors import ConfigurationError
from stator.ops.capacity.use_series import (
    DAY_MINUTES,
    KINDS,
    MINUTE,
    Dimension,
    TableHistory,
    UseSeries,
)

COLUMNS: Final = (
    "time", "table", "index", "read_units", "write_units", "read_throttles", "write_throttles",
    "provisioned_read", "provisioned_write", "size_bytes", "read_requests", "write_requests",
)  # fmt: skip
_NEEDED: Final = ("time", "table", "read_units", "write_units")
_COARSE: Final = 300
_MOST_DAYS: Final = 732
_VALUES: Final = COLUMNS[3:]
_SIZE: Final = _VALUES.index("size_bytes")


@dataclass(slots=True)
class _Rows:
    """The rows of one table or index, by time."""

    rows: dict[int, tuple[float, ...]] = field(default_factory=dict)


def read_history(path: Path) -> tuple[TableHistory, ...]:
    """Read the histories of every table in a file. The name ends with .csv or .parquet."""
    rows = _parquet_rows(path) if path.suffix == ".parquet" else _csv_rows(path)
    found: dict[str, dict[str | None, _Rows]] = defaultdict(dict)
    for number, (at, table, index, values) in enumerate(rows, start=2):
        place = found[table].setdefault(index, _Rows())
        if any(value < 0 for value in values):
            raise ConfigurationError(
                f"{path}, row {number}: a negative number", hint="units and events are 0 or more"
            )
        if not all(map(isfinite, values)):
            raise ConfigurationError(
                f"{path}, row {number}: a value that is no number",
                hint="leave a value out that was not measured",
            )
        place.rows[at] = values
        found[table].setdefault(None, _Rows())  # an index alone has an idle table
    if not found:
        raise ConfigurationError(f"{path} has no rows", hint=f"its columns: {', '.join(COLUMNS)}")
    return tuple(_history(table, places) for table, places in sorted(found.items()))


def _history(table: str, places: Mapping[str | None, _Rows]) -> TableHistory:
    times = sorted({at for place in places.values() for at in place.rows})
    period = _period(places.values())
    start, end = times[0], times[-1] + period
    if end - start > _MOST_DAYS * DAY_MINUTES * MINUTE:
        raise ConfigurationError(
            f"the history of {table} reaches from {_day(start)} to {_day(end)}",
            hint=f"at most {_MOST_DAYS} days can be replayed: check the times of the first and "
            "the last row",
        )
    minutes = (end - start) // MINUTE
    series: list[UseSeries] = []
    sizes: dict[str | None, float] = {}
    for index in sorted(places, key=lambda name: name or ""):
        rows = places[index].rows
        sizes[index] = max((values[_SIZE] for values in rows.values()), default=0.0)
        series += [_series(Dimension(index, kind), rows, start, minutes, period) for kind in KINDS]
    return TableHistory(table, start, tuple(series), period, sizes)


def _day(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _series(
    dimension: Dimension,
    rows: Mapping[int, tuple[float, ...]],
    start: int,
    minutes: int,
    period: int,
) -> UseSeries:
    kind = dimension.kind
    units, events = _VALUES.index(f"{kind}_units"), _VALUES.index(f"{kind}_throttles")
    capacity, asked = _VALUES.index(f"provisioned_{kind}"), _VALUES.index(f"{kind}_requests")
    consumed, throttles, provisioned = [0.0] * minutes, [0.0] * minutes, [0.0] * minutes
    of_each = period // MINUTE
    for at, values in rows.items():
        first = (at - start) // MINUTE
        for minute in range(first, first + of_each):
            consumed[minute] = values[units] / of_each
            throttles[minute] = values[events] / of_each
            provisioned[minute] = values[capacity]
    _fill_gaps(provisioned, {(at - start) // MINUTE for at in rows})
    requests = sum(values[asked] for values in rows.values())
    each = sum(consumed) / requests if requests and any(consumed) else 1.0
    return UseSeries(dimension, consumed, throttles, provisioned, each)


def _fill_gaps(provisioned: list[float], known: set[int]) -> None:
    """Give each minute without a row the provisioned units of the row before it."""
    if not any(provisioned):
        return
    for minute in range(1, len(provisioned)):
        if minute not in known and provisioned[minute] == 0.0:
            provisioned[minute] = provisioned[minute - 1]


def _period(places: Iterable[_Rows]) -> int:
    for place in places:
        times = sorted(place.rows)
        if any(later - earlier < _COARSE for earlier, later in pairwise(times)):
            return MINUTE
    return _COARSE


# --- CSV ------------------------------------------------------------------------------------------


def _csv_rows(path: Path) -> Iterator[tuple[int, str, str | None, tuple[float, ...]]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        names = reader.fieldnames or ()
        _check_columns(path, names)
        for number, row in enumerate(reader, start=2):
            try:
                values = tuple(float(row.get(name) or 0.0) for name in _VALUES)
                at = int(_moment(str(row["time"])).timestamp()) // MINUTE * MINUTE
            except ValueError as error:
                raise ConfigurationError(
                    f"{path}, row {number}: {error}",
                    hint="times look like 2026-11-02T00:00:00Z, and numbers like 812.5",
                ) from None
            yield at, str(row["table"]), row.get("index") or None, values


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _check_columns(path: Path, names: Sequence[str]) -> None:
    missing = [name for name in _NEEDED if name not in names]
    unknown = [name for name in names if name not in COLUMNS]
    if missing or unknown:
        what = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(unknown)}"
        raise ConfigurationError(
            f"{path} is not a history: it {what}", hint=f"its columns are {', '.join(COLUMNS)}"
        )


# --- Parquet --------------------------------------------------------------------------------------


def _parquet_rows(path: Path) -> Iterator[tuple[int, str, str | None, tuple[float, ...]]]:
    parquet = _pyarrow()
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        if not path.exists():
            raise
        raise ConfigurationError(
            f"{path} is not a Parquet file: {error}", hint="write it with stator advise --history"
        ) from None
    _check_columns(path, table.column_names)
    count = table.num_rows
    empty = [None] * count
    columns = {
        name: table[name].to_pylist() if name in table.column_names else empty for name in COLUMNS
    }
    values = zip(*(columns[name] for name in _VALUES))
    for at, name, index, row in zip(columns["time"], columns["table"], columns["index"], values):
        moment = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        numbers = tuple(float(value or 0.0) for value in row)
        yield int(moment.timestamp()) // MINUTE * MINUTE, name, index or None, numbers


def write_history(path: Path, histories: Iterable[TableHistory]) -> None:
    """Write histories to a Parquet or CSV file that ``read_history`` reads back."""
    rows = [row for history in histories for row in _rows(history)]
    temporary = path.with_name(f".{path.name}.part")
    if path.suffix == ".parquet":
        import pyarrow as pa

        parquet = _pyarrow()
        moment, text, number = pa.timestamp("s", tz="UTC"), pa.string(), pa.float64()
        types = (moment, text, text, *(number for _ in _VALUES))
        columns = list(zip(*rows)) or [() for _ in COLUMNS]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types)]
        parquet.write_table(pa.table(arrays, names=list(COLUMNS)), temporary, compression="zstd")
    else:
        with temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for at, *rest in rows:
                time = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
                writer.writerow([time, *("" if value is None else value for value in rest)])
    temporary.replace(path)  # a reader sees the old file or the new one, never half of it


def _rows(history: TableHistory) -> Iterator[tuple[Any, ...]]:
    step = history.source_seconds // MINUTE
    for index in (None, *history.indexes):
        read, write = (history.of(Dimension(index, kind)) for kind in KINDS)
        size = history.sizes.get(index, 0.0)
        for minute in range(0, history.minutes, step):
            span = slice(minute, minute + step)
            used, written = sum(read.consumed[span]), sum(write.consumed[span])
            yield (
                history.start + minute * MINUTE, history.table, index, used, written,
                sum(read.throttles[span]), sum(write.throttles[span]),
                read.provisioned[minute], write.provisioned[minute], size,
                used / read.units_per_request, written / write.units_per_request,
            )  # fmt: skip


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ConfigurationError(
            "a Parquet history needs pyarrow",
            hint="pip install 'stator[arrow]', or use a .csv file",
        ) from None
    return parquet
