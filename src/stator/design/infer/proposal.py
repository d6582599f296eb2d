"""A design for tables that exist: inferred, checked, and made simpler where it does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, get_args

from stator.design.infer.fit import problem_of, without_unserved
from stator.design.infer.inference import (
    Detail,
    GuessedTable,
    Inference,
    TableSample,
    TakenNames,
    guess_table,
)
from stator.design.infer.table_keys import Item
from stator.errors import ConfigurationError

_DETAILS: Final[tuple[Detail, ...]] = get_args(Detail)
_RATES: Final = "rates: every pattern has rps=1 and no writes are declared; enter the real rates"


def infer(
    items: Sequence[Item], *, table: str, description: Mapping[str, Any] | None = None
) -> Inference:
    """Propose a design from items in DynamoDB JSON.

    ``description`` is the table's description, as DescribeTable returns it.
    """
    return infer_tables([TableSample(table, items, description)], name=table)


def infer_tables(samples: Sequence[TableSample], *, name: str) -> Inference:
    """Propose one design for several tables.

    The design plans, has the keys and indexes of the tables, and reads and writes the items of the
    samples under their present keys. If kinds of items with composed keys do not fit a table, the
    table gets a single entity, which keeps the key attributes as they are. Raises
    ConfigurationError if that entity does not fit either.
    """
    if not samples:
        raise ConfigurationError(
            "there is no table to infer a design from", hint="name a table that has items"
        )
    taken = TakenNames(set(), set(), name if len(samples) > 1 else "")
    tables = tuple(_fitting(sample, taken) for sample in samples)
    doubts = [doubt for table in tables for doubt in table.doubts]
    found = Inference(name, tables, (*dict.fromkeys(doubts), _RATES))
    problem = problem_of(found, samples)
    if problem is not None:
        raise ConfigurationError(
            f"no design fits {', '.join(each.name for each in samples)} together: {problem}",
            hint="infer a design for each table by itself",
        )
    return found


def _fitting(sample: TableSample, taken: TakenNames) -> GuessedTable:
    """Return the most detailed guess that fits a table. ``taken`` gets the names that it uses."""
    said = ""
    for detail in _DETAILS:
        tried = TakenNames(set(taken.entities), set(taken.patterns), taken.common)
        found = Inference(sample.name, (guess_table(sample, detail, tried),), ())
        try:
            found = without_unserved(found, sample)
        except Exception as error:  # a file that does not run is reported below
            said = said or f"{type(error).__name__}: {error}"
            continue
        problem = problem_of(found, [sample])
        if problem is None:
            taken.entities |= tried.entities
            taken.patterns |= tried.patterns
            [table] = found.tables
            if said:
                why = f"{sample.name}: simplified, because finer kinds of items do not fit ({said})"
                table = replace(table, doubts=(why, *table.doubts))
            return table
        said = said or problem
    raise ConfigurationError(
        f"no design fits {sample.name}: {said}",
        hint="write the entities by hand; docs/guides/existing-tables.md shows how",
    )
