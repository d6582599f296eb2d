"""Record batches as items, without a Python object for each value.

Arrow's kernels build the JSON of a whole batch in C++, piece by piece:

    '{"pk":{"S":"' + pk + '"},"total":{"N":"' + total + '"}'
        + (',"note":{"S":"' + note + '"}' or '') + '}'

One search tells whether any value of a text column needs an escape. If none does, the text is
copied unchanged. A column that needs escapes, or whose type is not simple, is encoded value by
value and added to the others as finished JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import orjson

from stator.errors import RowRefused
from stator.formats.arrow import python_values
from stator.formats.extras import pyarrow
from stator.formats.plain import ENCODERS, encode_value

dumps = orjson.dumps
# Characters that must be escaped inside a JSON string.
_ESCAPED = '["\\\\\\x00-\\x1f]'


class ColumnLike(Protocol):
    """A column of a record batch: its index, and the attribute that it becomes.

    ``target`` and ``kind`` are the attribute's name and type; None means that each value decides.
    """

    @property
    def at(self) -> int: ...
    @property
    def target(self) -> str: ...
    @property
    def kind(self) -> str | None: ...


def arrow_items(batch: Any, columns: tuple[ColumnLike, ...]) -> list[bytes]:
    """Return the items of a record batch as JSON, in order.

    Raises an error if any value does not fit the type of its attribute. The caller then encodes
    the batch row by row, which finds the row at fault.
    """
    arrow, compute = pyarrow(), pyarrow("pyarrow.compute")
    required: list[Any] = []
    optional: list[Any] = []
    for column in columns:
        array = batch.column(column.at)
        before, text, after = _form(column, array, arrow, compute)
        name = dumps(column.target) + b":" + before
        if array.null_count:
            joined = compute.binary_join_element_wise(
                b"," + name, text, after, b"", null_handling="emit_null"
            )
            optional.append(compute.fill_null(joined, b""))
        else:
            required += [(b"," if required else b"{") + name, text, after]
    items: list[bytes] = compute.binary_join_element_wise(
        *required, *optional, b"}", b""
    ).to_pylist()
    return items


def _form(column: ColumnLike, array: Any, arrow: Any, compute: Any) -> tuple[bytes, Any, bytes]:
    """Return the JSON of a column's values in three pieces: prefix, texts and suffix.

    A column of numbers has the prefix ``{"N":"``, an array of texts such as ``12``, and the suffix
    ``"}``. Values that are encoded one by one are complete JSON, and have no prefix or suffix.
    """
    types = pyarrow("pyarrow.types")
    kind = array.type
    if types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if column.kind == "S" and types.is_string(kind) and not _needs_escapes(array, compute):
        return b'{"S":"', array.cast(arrow.binary()), b'"}'
    if column.kind in ("N", "S") and types.is_integer(kind):
        return b'{"%b":"' % column.kind.encode(), _text(array, arrow), b'"}'
    if column.kind == "N" and types.is_floating(kind) and not types.is_float16(kind):
        if not compute.all(compute.is_finite(array), min_count=0).as_py():
            raise RowRefused("a number is NaN or infinite, which DynamoDB cannot store")
        return b'{"N":"', _text(array, arrow), b'"}'
    if column.kind == "BOOL" and types.is_boolean(kind):
        return b'{"BOOL":', _text(array, arrow), b"}"
    encode: Callable[[Any], Any] = encode_value if column.kind is None else ENCODERS[column.kind]
    written = [None if value is None else dumps(encode(value)) for value in python_values(array)]
    return b"", arrow.array(written, arrow.binary()), b""


def _text(array: Any, arrow: Any) -> Any:
    return array.cast(arrow.string()).cast(arrow.binary())


def _needs_escapes(array: Any, compute: Any) -> bool:
    found = compute.any(compute.match_substring_regex(array, _ESCAPED), min_count=0).as_py()
    return bool(found)
