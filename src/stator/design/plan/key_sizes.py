"""Key sizes: how long a key can get, compared with DynamoDB's limits.

A partition key has at most 2048 bytes, a sort key at most 1024.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stator.design.entities.shapes import Choice, Maybe, Shape
from stator.design.plan import key_text as keys
from stator.design.plan.templates import Part, PlannedKeyAttribute, Template
from stator.errors import DesignError
from stator.model.limits import PARTITION_KEY_BYTES, SORT_KEY_BYTES
from stator.model.values import Value

_MOST_PER_CHARACTER: Final = 4
# The fewest and the most bytes by encoding. A number has at most 38 digits, preceded by the
# lengths of its exponent and of its digits.
_BOUNDS: Final[dict[str, tuple[int, int]]] = {
    "int": (3, 41), "epoch": (3, 41), "decimal": (1, 48), "float": (1, 30), "bool": (1, 1),
    "datetime": (27, 27), "date": (10, 10), "time": (15, 15), "uuid": (36, 36),
}  # fmt: skip


def limit_of(key: PlannedKeyAttribute) -> int:
    return SORT_KEY_BYTES if key.is_sort else PARTITION_KEY_BYTES


def check_size(
    entity: str, key: PlannedKeyAttribute, value: Value, values: Mapping[str, Any]
) -> None:
    """Raise DesignError if a key is too long for DynamoDB. The error names the longest field.

    ``values`` are the values of the item's fields.
    """
    text, limit = value.get("S"), limit_of(key)
    if not isinstance(text, str) or len(text) * _MOST_PER_CHARACTER <= limit:
        return
    size = len(text.encode())
    if size <= limit:
        return
    sizes = {
        part.value: len(str(part.fill(values, None)).encode())
        for part in key.template.parts
        if part.kind == "field"
    }
    field = max(sizes, key=lambda name: sizes[name])
    where = f"index {key.index}" if key.index else "the table"
    kind = "sort" if key.is_sort else "partition"
    raise DesignError(
        f"{entity}.{field} is too long for a key: it takes {sizes[field]} bytes of the {kind} key "
        f"{key.name} of {where}, which then has {size} bytes; DynamoDB allows {limit}",
        hint=f"shorten {field}, or store a hash of it in a field that patterns compare instead",
    )


# --- by type ------------------------------------------------------------------------------------


def bounds(template: Template, shapes: Mapping[str, Shape]) -> tuple[int, int | None]:
    """Return the minimum and the maximum length of a key, in bytes.

    The maximum is None if a field in the key has no maximum length.
    """
    found = [_part_bounds(part, shapes, template.native) for part in template.parts]
    least = sum(low for low, _ in found)
    highs = [high for _, high in found]
    return least, None if None in highs else sum(high or 0 for high in highs)


def _part_bounds(part: Part, shapes: Mapping[str, Shape], native: bool) -> tuple[int, int | None]:
    if part.kind == "text":
        return len(part.value.encode()), len(part.value.encode())
    if part.kind == "shard":
        width = len(str(part.shards - 1))
        return width, width
    shape = shapes[part.value]
    shape = shape.inner if isinstance(shape, Maybe) else shape
    if isinstance(shape, Choice):
        plain = [keys.plain(value) for value in shape.values]
        texts = [
            value if native and isinstance(value, str) else keys.encode(part.encoding, value)
            for value in plain
        ]
        sizes = [len(text.encode()) for text in texts]
        return min(sizes), max(sizes)
    return _BOUNDS.get(part.encoding, (0, None))
