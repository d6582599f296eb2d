"""Encodes Arrow columns as items of a plain entity, without a Python object for each row.

An entity is plain if its fields are scalars and its keys consist of text and fields. The columns of
the fields become attributes as the codec writes them, key columns are joined from them, and
``arrow_items`` builds the items. A block with a value that does not fit is encoded row by row
instead (``entity_rows``), which finds the rows at fault. The tests compare both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stator.design.entities.derived_parts import length_of
from stator.design.entities.shapes import Epoch, Maybe, Scalar, Shape
from stator.design.plan import key_text as keys
from stator.design.plan.templates import Part, PlannedKeyAttribute
from stator.errors import RowRefused
from stator.formats.arrow_items import arrow_items
from stator.formats.extras import pyarrow
from stator.pipeline.bulk.job.pending_rows import Block, PendingRow
from stator.pipeline.bulk.load.columns import Dead
from stator.pipeline.bulk.load.entity_rows import EntityEncoder
from stator.pipeline.bulk.load.readers import RawRows
from stator.tables.codegen.key_writer import is_simple, is_the_field
from stator.tables.schema.entity_map import EntityMap

_KINDS: dict[Any, str] = {str: "S", int: "N", float: "N", bool: "BOOL", datetime: "S", Epoch: "N"}
_IN_KEYS = (str, datetime)


@dataclass(frozen=True, slots=True)
class _ItemColumn:
    """A column of the record batch from which ``arrow_items`` builds items."""

    at: int
    target: str
    kind: str


def fits_columns(of: EntityMap) -> bool:
    """Whether an entity is plain, so that its columns can be encoded without objects.

    It must be a dataclass of scalars with simple keys. It must not have unique or large fields, a
    version, automatic times or an automatic expiry.
    """
    if of.is_written_alone or of.has_stamps or not hasattr(of.cls, "__dataclass_fields__"):
        return False
    if of.info.python_names:
        return False
    shapes = {name: _scalar(field.shape) for name, field in of.fields.items()}
    if not all(shape in _KINDS for shape in shapes.values()):
        return False
    joined_keys = [key for key in of.plan.keys if not is_the_field(key)]
    return all(
        is_simple(of.info, key) and all(_is_joined(part, shapes) for part in key.template.parts)
        for key in joined_keys
    )


def _scalar(shape: Shape) -> Any:
    inner = shape.inner if isinstance(shape, Maybe) and not shape.kept else shape
    return inner.python if isinstance(inner, Scalar) else None


def _is_joined(part: Part, shapes: Mapping[str, Any]) -> bool:
    return part.kind == "text" or (shapes[part.value] in _IN_KEYS and not part.inverted)


class EntityColumnEncoder:
    """Encodes record batches as items of a plain entity, column by column.

    A batch with a value that does not fit is encoded row by row.
    """

    def __init__(self, of: EntityMap, renamed: Mapping[str, str], now: Callable[[], float]) -> None:
        self._of = of
        self._renamed = renamed
        self._rows = EntityEncoder(of, renamed, False, now)
        self._needed = {
            name for name, field in of.fields.items() if not isinstance(field.shape, Maybe)
        }

    def entries(self, rows: RawRows, block: Block, dead: Dead) -> list[PendingRow]:
        if rows.batch is not None:
            try:
                return self._by_column(rows, block)
            except _arrow_faults():
                pass
        return self._rows.entries(rows, block, dead)

    def _by_column(self, rows: RawRows, block: Block) -> list[PendingRow]:
        arrow = pyarrow()
        of = self._of
        columns: dict[str, Any] = {}
        for at, source in enumerate(rows.names):
            target = self._renamed.get(source, source)
            if target:
                columns[target] = _as_attribute(
                    rows.batch.column(at), _scalar(of.fields[target].shape)
                )
        if any(name not in columns or columns[name].null_count for name in self._needed):
            raise RowRefused("a field that is not optional has no column, or an empty cell")
        if any(_has_empty(columns[name]) for name in of.identity if name in columns):
            raise RowRefused("a field of the identity is empty")
        count = rows.batch.num_rows
        attributes = {
            name: (array, _KINDS[_scalar(of.fields[name].shape)]) for name, array in columns.items()
        }
        for key in of.plan.keys:
            if not is_the_field(key):
                attributes[key.name] = (_joined(key, columns), "S")
        if of.plan.discriminator is not None:
            attributes[of.plan.discriminator] = (arrow.repeat(arrow.scalar(of.name), count), "S")
        batch = arrow.RecordBatch.from_arrays(
            [array for array, _ in attributes.values()], names=list(attributes)
        )
        described = tuple(
            _ItemColumn(at, name, kind) for at, (name, (_, kind)) in enumerate(attributes.items())
        )
        items = arrow_items(batch, described)
        found = [attributes[name][0].to_pylist() for name in of.key_names]
        marks = found[0] if len(found) == 1 else zip(*found)
        return [
            PendingRow(mark, item, at, block) for mark, item, at in zip(marks, items, rows.places)
        ]


def _has_empty(array: Any) -> bool:
    if not pyarrow("pyarrow.types").is_string(array.type):
        return False
    compute = pyarrow("pyarrow.compute")
    return bool(compute.any(compute.equal(array, ""), min_count=0).as_py())


def _as_attribute(array: Any, python: Any) -> Any:
    """Return a field's column in the form that is stored; ``python`` is the field's Python type."""
    arrow, compute, types = pyarrow(), pyarrow("pyarrow.compute"), pyarrow("pyarrow.types")
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if python is datetime and types.is_timestamp(kind) and kind.tz is not None:
        moment = array.cast(arrow.timestamp("us", "UTC"))
        return compute.strftime(moment, format="%Y-%m-%dT%H:%M:%SZ")
    if python is Epoch and types.is_timestamp(kind) and kind.tz is not None:
        return compute.cast(
            compute.ceil_temporal(array, unit="second"), arrow.timestamp("s", "UTC")
        ).cast(arrow.int64())
    plain = {
        str: types.is_string,
        int: types.is_integer,
        float: types.is_float64,
        bool: types.is_boolean,
    }
    if python in plain and plain[python](kind):
        return array
    raise RowRefused(f"the column's Arrow type {kind} does not fit the field without conversion")


def _joined(key: PlannedKeyAttribute, columns: Mapping[str, Any]) -> Any:
    compute = pyarrow("pyarrow.compute")
    parts = [
        part.value if part.kind == "text" else _key_text(part, columns[part.value])
        for part in key.template.parts
    ]
    return compute.binary_join_element_wise(*parts, "")


def _key_text(part: Part, array: Any) -> Any:
    """Return a field's column as key text. Each distinct value is encoded only once, for speed."""
    given, _, derived = part.encoding.partition(".")
    if derived:
        compute = pyarrow("pyarrow.compute")
        array = compute.utf8_slice_codeunits(array, start=0, stop=length_of(derived))
    if given != "str":
        return array
    distinct = array.dictionary_encode()
    write = keys.encoding_named(given).write
    escaped = pyarrow().array([write(text) for text in distinct.dictionary.to_pylist()])
    return escaped.take(distinct.indices)


def _arrow_faults() -> tuple[type[BaseException], ...]:
    arrow = pyarrow()
    return (RowRefused, TypeError, ValueError, ArithmeticError, arrow.ArrowException)
