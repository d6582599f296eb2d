"""The lock file: the plan that the tables were created from, committed next to the design.

Keys cannot change once data is stored under them, so the planner's choice is frozen in
``<name>.design.json``. ``compare`` says what a new plan means for data written under the old one:

| risk | meaning | example |
|---|---|---|
| ``safe`` | deploy it; stored items need no change | a new entity, pattern or optional field |
| ``default`` | stored items lack a value that the code requires | a new required field |
| ``upcast`` | new code cannot read old items, or deployed code new items | another type |
| ``backfill`` | first rewrite the items, or create the index again | a new ``GSI2PK`` |
| ``orphans`` | items would stay under keys that no code computes any more | another base key |

The lock file also keeps the stored shape of every entity (``stored_shape``): fields, types and
version.

The file carries a format number (``plan.FORMAT``). Older formats are read, newer ones refused.
Only ``read_lock`` and ``write_lock`` touch the disk.

The lock file is next to the file whose top-level code creates the design. ``defining_file`` finds
that file, so a program that connects and a command that plans start from the same lock.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from stator.design.capacity_units import write_units
from stator.design.plan.plan import (
    EntityPlan,
    IndexPlan,
    PatternPlan,
    Plan,
    TablePlan,
)
from stator.design.plan.stored_shape import (
    Risk,
    kept_attribute,
    likely_renames,
    shape_changes,
)
from stator.design.plan.templates import Part, PlannedKeyAttribute
from stator.design.unit_prices import WRITE_UNIT_DOLLARS
from stator.errors import ConfigurationError, DesignError
from stator.model.quantities import about_dollars, amount, cents

_RISKS: tuple[Risk, ...] = ("orphans", "upcast", "default", "backfill", "safe")
# Smaller differences are rounding, not changes.
_NOTICEABLE = 0.005


@dataclass(frozen=True, slots=True)
class LockChange:
    """One difference between two plans: its risk for data, its subject, what changed, what to do.

    ``blocks`` is True if ``do`` must be done before the lock file is written. If it is None, the
    risk decides: only the risk ``orphans`` blocks.
    """

    risk: Risk
    subject: str
    what: str
    do: str
    blocks: bool | None = None

    @property
    def is_blocking(self) -> bool:
        """Whether stored items could not be found or read after this change."""
        return self.risk == "orphans" if self.blocks is None else self.blocks

    def __str__(self) -> str:
        return f"{self.risk}: {self.subject}: {self.what}; {self.do}"


# --- the file -------------------------------------------------------------------------------------


def lock_path(name: str, folder: Path) -> Path:
    """Return where the lock file of a design stands: ``<name>.design.json`` in a folder."""
    return folder / f"{name}.design.json"


def defining_file() -> Path | None:
    """Return the file whose top-level code is running, or None if there is none.

    If a module is being imported, its file is returned, even if a function in another file builds
    the design. Otherwise the file of the started program is returned. Notebooks, ``python -c`` and
    threads have no such file.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    file = None if frame is None else frame.f_globals.get("__file__")
    return Path(os.path.abspath(file)) if isinstance(file, str) else None


class LockFile:
    """The lock file of one design. It is read again only after it has changed.

    ``read`` returns the same object for the same file, because plans are cached by their lock.
    """

    __slots__ = ("_plan", "_read", "name", "path")

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.path = lock_path(name, folder)
        self._read: tuple[int, int, int] | None = None
        self._plan: Plan | None = None

    def read(self) -> Plan | None:
        """Return the plan in the file, or None if the file does not exist."""
        try:
            found = self.path.stat()
        except OSError:  # also if a part of the path is a zip archive
            self._read = self._plan = None
            return None
        version = (found.st_ino, found.st_mtime_ns, found.st_size)
        if version != self._read:
            self._plan, self._read = read_lock(self.path), version
            if self._plan is not None and self._plan.name != self.name:
                self._read = None
                raise ConfigurationError(
                    f"{self.path} is a plan of the design {self._plan.name}, not of {self.name}",
                    hint="restore it from version control, or delete it and run"
                    " `stator plan --write`",
                )
        return self._plan


def read_lock(path: Path) -> Plan | None:
    """Return the plan in a lock file, or None if the file does not exist."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}", hint="restore it from version control"
        ) from None
    try:
        return Plan.from_json(text)
    except DesignError as error:
        raise ConfigurationError(f"{path}: {error.message}", hint=error.hint) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        hint = (
            "restore it from version control; after a merge, take one side and write it again: "
            "stator plan --write"
        )
        raise ConfigurationError(f"{path} is not a plan: {error}", hint=hint) from None


def write_lock(path: Path, plan: Plan) -> bool:
    """Write a plan to a lock file atomically.

    Returns False if the file already had the same text.
    """
    text = plan.to_json()
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.read_text(encoding="utf-8") == text:
            return False
    try:
        _replace(path, text)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror or error}") from None
    return True


def _replace(path: Path, text: str) -> None:
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A temporary file is readable by its owner only.
        mode = path.stat().st_mode if path.exists() else 0o644
        Path(beside).chmod(mode & 0o777)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


# --- the difference -------------------------------------------------------------------------------


def compare(old: Plan, new: Plan) -> list[LockChange]:
    """Return every difference that matters to data or code, gravest first.

    Differences in wording and rounding are left out.
    """
    found = [*_tables(old, new), *_entities(old, new)]
    found += _patterns(old, new, keys_change=bool(found))
    if not found and _estimates_differ(old, new):
        before, after = old.dollars_per_month, new.dollars_per_month
        found = [
            LockChange(
                "safe",
                f"design {new.name}",
                f"the estimates changed, from ${cents(before)} to ${cents(after)} a month",
                "write the lock file again",
            )
        ]
    return sorted(
        found, key=lambda change: (_RISKS.index(change.risk), change.subject, change.what)
    )


def other_keys(one: Plan, other: Plan) -> list[str]:
    """Return the names of the entities whose base keys differ between two plans."""
    theirs = {each.name: _written(_keys(each, None)) for each in other.entities}
    return [
        each.name
        for each in one.entities
        if each.name in theirs and theirs[each.name] != _written(_keys(each, None))
    ]


def _estimates_differ(old: Plan, new: Plan) -> bool:
    if abs(old.dollars_per_month - new.dollars_per_month) > _NOTICEABLE:
        return True
    if old.demand is not None and old.demand != new.demand:
        return True
    items = {each.name: (each.items, each.item_bytes) for each in old.entities}
    rates = {each.name: each.requests_per_second for each in old.patterns}
    return items != {
        each.name: (each.items, each.item_bytes) for each in new.entities
    } or rates != {each.name: each.requests_per_second for each in new.patterns}


# --- tables and indexes


def _tables(old: Plan, new: Plan) -> Iterator[LockChange]:
    before = {table.name: table for table in old.tables}
    after = {table.name: table for table in new.tables}
    for name in sorted({*before, *after}):
        if name not in before:
            yield LockChange(
                "safe",
                f"table {name}",
                "is new",
                "create it before the code that uses it is deployed",
            )
        elif name not in after:
            yield LockChange(
                "orphans",
                f"table {name}",
                "is no longer in the design",
                "copy its items to where they belong now, then delete it",
            )
        else:
            yield from _table(before[name], after[name], backfill_units(old, new))


def backfill_units(old: Plan, new: Plan) -> dict[tuple[str, str], float]:
    """Return the write units that filling each new index takes once, by table and index.

    DynamoDB writes an entry for each item that the table has already. An index whose key is made of
    several fields needs these keys on the items first, so each item is written as well.
    """
    known = {(table.name, index.name) for table in old.tables for index in table.indexes}
    there = {(each.name, each.table) for each in old.entities}
    native = {
        (table.name, index.name): index.native for table in new.tables for index in table.indexes
    }
    sizes = {each.name: each.item_bytes for each in new.entities}
    found: dict[tuple[str, str], float] = {}
    for each in new.stored:
        if each.index is None or each.is_guard or (each.table, each.index) in known:
            continue
        if (each.entity, each.table) not in there:
            continue  # the entity is new, and has no items yet
        units = float(write_units(each.item_bytes))
        if not native.get((each.table, each.index), False):
            units += write_units(sizes[each.entity])
        place = each.table, each.index
        found[place] = found.get(place, 0.0) + each.count * units
    return found


def backfill_text(units: float) -> str:
    """Return the cost of a backfill of this many write units, as text, or "" if there are none."""
    dollars = units * WRITE_UNIT_DOLLARS
    if dollars < 0.01:
        return ""
    return f"filling it takes about {amount(units)} write units once, {about_dollars(dollars)}"


def _table(
    old: TablePlan, new: TablePlan, filled: dict[tuple[str, str], float]
) -> Iterator[LockChange]:
    if _schema(old) != _schema(new):
        yield LockChange(
            "orphans",
            f"table {new.name}",
            f"its key was {_shown(_schema(old))} and would be {_shown(_schema(new))}",
            "a table's key cannot change: create a new table and copy the items, or keep the key "
            "with key= and names=",
        )
    before = {index.name: index for index in old.indexes}
    after = {index.name: index for index in new.indexes}
    for name in sorted({*before, *after}):
        subject = f"index {name} of {new.name}"
        if name not in before:
            yield _new_index(after[name], subject, filled.get((new.name, name), 0.0))
        elif name not in after:
            yield _dropped_index(before[name], subject)
        else:
            yield from _index(before[name], after[name], old, new, subject)


def _schema(table: TablePlan) -> list[tuple[str, str]]:
    kinds = dict(table.attributes)
    return [
        (name, kinds.get(name, "S")) for name in (table.partition, table.sort) if name is not None
    ]


def _shown(schema: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in schema)


def _new_index(index: IndexPlan, subject: str, units: float) -> LockChange:
    if index.kind == "LSI":
        return LockChange(
            "orphans",
            subject,
            "is a new local index, which can only be created together with its table",
            "create a new table and copy the items, or drop consistent=True so that a global index "
            "is enough",
        )
    once = backfill_text(units)
    return LockChange(
        "safe",
        subject,
        f"is new; {once}" if once else "is new",
        "create it and wait until it is ACTIVE before the code that reads it is deployed",
    )


def _dropped_index(index: IndexPlan, subject: str) -> LockChange:
    if index.kind == "LSI":
        do = "a local index cannot be dropped: it stays, and is paid for, as long as its table"
    else:
        do = "drop it once no deployed code reads it"
    return LockChange("safe", subject, "is no longer needed", do)


def _index(
    old: IndexPlan, new: IndexPlan, old_table: TablePlan, new_table: TablePlan, subject: str
) -> Iterator[LockChange]:
    again = (
        "an index cannot change: create it under another name with names=, read that, "
        "then drop the old one"
    )
    risk: Risk = "orphans" if "LSI" in (old.kind, new.kind) else "backfill"
    if risk == "orphans":
        again = (
            "a local index can only be created together with its table: create a new table and "
            "copy the items"
        )
    before, after = _index_schema(old, old_table), _index_schema(new, new_table)
    if (old.kind, before) != (new.kind, after):
        what = f"its key was {_shown(before)} and would be {_shown(after)}"
        yield LockChange(risk, subject, what, again)
    elif (old.projection, old.included) != (new.projection, new.included):
        yield LockChange(
            risk,
            subject,
            f"its projection was {_projection(old)} and would be {_projection(new)}",
            again,
        )


def _index_schema(index: IndexPlan, table: TablePlan) -> list[tuple[str, str]]:
    kinds = dict(table.attributes)
    roles = [(name, "HASH") for name in index.partition] + [(name, "RANGE") for name in index.sort]
    return [(name, f"{role} {kinds.get(name, 'S')}") for name, role in roles]


def _projection(index: IndexPlan) -> str:
    return f"{index.projection} {', '.join(index.included)}".strip()


# --- entities


def _entities(old: Plan, new: Plan) -> Iterator[LockChange]:
    before = {entity.name: entity for entity in old.entities}
    after = {entity.name: entity for entity in new.entities}
    for name in sorted({*before, *after}):
        if name not in before:
            yield LockChange("safe", f"entity {name}", "is new", "deploy it")
        elif name not in after:
            yield _gone(before[name], [each for each in new.entities if each.name not in before])
        else:
            if before[name].fields:
                for each in shape_changes(before[name].shape, after[name].shape):
                    yield LockChange(each.risk, each.subject, each.what, each.do, each.blocks)
            table = new.table(after[name].table)
            yield from _entity(before[name], after[name], {index.name for index in table.indexes})


def _gone(entity: EntityPlan, added: list[EntityPlan]) -> LockChange:
    """Return the change of an entity that the design no longer has.

    A new entity with the same fields is probably the same entity under another name.
    """
    alike = [each.name for each in added if entity.fields and each.fields == entity.fields]
    name = alike[0] if len(alike) == 1 else "..."
    renamed = f"{name} is its new name" if len(alike) == 1 else "it was renamed"
    return LockChange(
        "orphans",
        f"entity {entity.name}",
        "is no longer in the design",
        f'if {renamed}, keep the stored name: `class {name}(Entity, name="{entity.name}")`; '
        f"otherwise delete its items from {entity.table}, or copy them",
    )


def _entity(old: EntityPlan, new: EntityPlan, indexes: set[str]) -> Iterator[LockChange]:
    subject = f"entity {new.name}"
    if old.table != new.table:
        do = "copy its items to the new table before the code is deployed"
        yield LockChange("orphans", subject, f"moves from table {old.table} to {new.table}", do)
        return  # copying the items writes all their keys
    before, after = _keys(old, None), _keys(new, None)
    if before != after:
        yield LockChange(
            "orphans",
            subject,
            f"its key was {_written(before)} and would be {_written(after)}",
            f"{_old_key(old, new, before)}copy every item to its new key",
        )
    if old.discriminator != new.discriminator and new.discriminator is not None:
        yield LockChange(
            "backfill",
            subject,
            f"items now have the attribute {new.discriminator}, which names their entity",
            "write it on the existing items",
        )
    yield from _index_keys(old, new, indexes, subject)


def _index_keys(
    old: EntityPlan, new: EntityPlan, indexes: set[str], subject: str
) -> Iterator[LockChange]:
    """Yield the differences between the index keys of an entity in two plans.

    ``indexes`` are the table's indexes in the new plan. Keys of other indexes do not matter.
    """
    for index in sorted(indexes):
        before, after = _keys(old, index), _keys(new, index)
        if before == after:
            continue
        if after and all(key.template.native for key in after.values()):
            lacking = _lacking(old, new, after)
            if lacking:
                what = f"index {index} is keyed by {', '.join(lacking)}, which existing items lack"
                do = "write the items again; the index does not hold them until then"
                yield LockChange("backfill", subject, what, do)
            continue  # other items have these attributes, so DynamoDB fills the index
        if not after:
            do = "items keep the attributes, and their entries, until they are rewritten"
            yield LockChange("safe", subject, f"is no longer in index {index}", do)
        elif not before:
            what = f"gets {_written(after)} for index {index}"
            yield LockChange(
                "backfill",
                subject,
                what,
                "write it on the existing items, then read the index",
            )
        else:
            what = f"its key in index {index} was {_written(before)} and would be {_written(after)}"
            yield LockChange(
                "backfill", subject, what, "rewrite the items before the index is read by that key"
            )


def _lacking(old: EntityPlan, new: EntityPlan, keys: dict[str, PlannedKeyAttribute]) -> list[str]:
    """Return the key attributes of a native index that items of the old plan do not have.

    Optional fields are left out: an item without one simply is not in the index.
    """
    stored = {each.name for each in old.fields}
    optional = {each.name for each in new.fields if each.presence == "optional"}
    return [name for name in keys if stored and name not in stored | optional]


def _keys(entity: EntityPlan, index: str | None) -> dict[str, PlannedKeyAttribute]:
    return {key.name: key for key in entity.keys if key.index == index}


def _written(keys: dict[str, PlannedKeyAttribute]) -> str:
    return ", ".join(f"{name} = {_template(key)}" for name, key in keys.items()) or "none"


def _template(key: PlannedKeyAttribute) -> str:
    """Return a key's template as text with the encodings of its fields.

    ``str(template)`` leaves the encodings out.
    """
    marks = []
    for part in key.template.parts:
        if part.kind == "field":
            is_plain = part.encoding in ("", "str") or part.name != part.value
            shown = part.name if is_plain else f"{part.value}: {part.encoding}"
            marks.append(f"{{{shown}{', newest first' if part.inverted else ''}}}")
        else:
            marks.append(_shards_shown(part) if part.kind == "shard" else part.value)
    return "".join(marks) + (f" where {key.condition}" if key.when else "")


def _shards_shown(part: Part) -> str:
    return f"{{{part.shards} shards{', adaptive' if part.adaptive else ''}}}"


def _old_key(old: EntityPlan, new: EntityPlan, keys: dict[str, PlannedKeyAttribute]) -> str:
    """Return the start of a piece of advice: "keep the old key with `...`, or ".

    Returns an empty text if no declaration in the class could keep the key. A field of the key may
    be gone without a rename, or have another type. Shards and inverted parts cannot be written by
    hand.
    """
    parts = [part for key in keys.values() for part in key.template.parts]
    if any(part.kind == "shard" or part.inverted for part in parts):
        return ""
    names = {part.value for part in parts if part.kind == "field"}
    types = {each.name: each.type for each in old.fields}
    if any(
        types.get(each.name, each.type) != each.type for each in new.fields if each.name in names
    ):
        return ""
    gone = [each for each in old.fields if each.name in names] if new.fields else []
    gone = [each for each in gone if each.name not in {field.name for field in new.fields}]
    if not gone:
        return f"keep the old key with `class {new.name}(Entity, key={_override(keys)})`, or "
    renamed = likely_renames(old.fields, new.fields)
    if all(each.name in renamed for each in gone):
        kept = ", ".join(f"`{kept_attribute(each, renamed[each.name])}`" for each in gone)
        return f"keep the attributes of renamed fields: {kept}, or "
    return ""


def _override(keys: dict[str, PlannedKeyAttribute]) -> str:
    if all(key.template.native for key in keys.values()):  # the fields themselves are attributes
        return "{" + ", ".join(f'"{name}": "{key.template}"' for name, key in keys.items()) + "}"
    return (
        "("
        + ", ".join(f'"{key.template}"' for key in keys.values())
        + ("," if len(keys) == 1 else "")
        + ")"
    )


# --- patterns


def _patterns(old: Plan, new: Plan, *, keys_change: bool) -> Iterator[LockChange]:
    """Yield the differences between patterns.

    ``keys_change`` says whether tables, keys or indexes differ, too.
    """
    before = {pattern.name: pattern for pattern in old.patterns}
    after = {pattern.name: pattern for pattern in new.patterns}
    for name in sorted({*before, *after}):
        if name not in before:
            yield LockChange("safe", f"pattern {name}", "is new", "deploy it")
        elif name not in after:
            yield LockChange("safe", f"pattern {name}", "is gone", "nothing is left to do")
        elif requests_of(before[name]) != requests_of(after[name]):
            what = f"was {_request(before[name])} and would be {_request(after[name])}"
            yield LockChange(
                "safe",
                f"pattern {name}",
                what,
                "deploy it after the changes to keys and indexes above"
                if keys_change
                else "deploy it; no key or index changes",
            )


def requests_of(pattern: PatternPlan) -> list[tuple[object, ...]]:
    """Return the requests of a pattern, without their cost."""
    return [
        (
            step.operation, step.table, step.entities, step.index, step.key, step.filter,
            step.forward, step.limit, step.limit_param, step.consistent, step.is_count,
            step.shards, step.fetch, step.alternatives, step.order, step.then, step.lists,
            step.guard, step.in_memory, step.descending, step.fetched_filter,
        )
        for step in pattern.steps
    ]  # fmt: skip


def _request(pattern: PatternPlan) -> str:
    steps = []
    for step in pattern.steps:
        where = f" {step.key_condition}" if step.key else ""
        extra = "".join(f" filter {each}" for each in step.filters)
        order = "" if step.forward else " backwards"
        order = " sorted in memory" if step.in_memory else order
        consistent = " consistent" if step.consistent else ""
        index = f" {step.index}" if step.index else ""
        steps.append(f"{step.operation} {step.table}{index}{where}{extra}{order}{consistent}")
    return "; ".join(steps)
