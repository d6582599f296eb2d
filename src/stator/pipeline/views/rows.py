"""``Row``: a result of a view, with the group's fields and the metrics as attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Row(Mapping[str, Any]):
    """One row of a view's result: the values of the group's fields and of the metrics.

    ``row.isp``, ``row.tests`` and ``row["tests"]`` work; ``dict(row)`` has everything.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(
                f"the row has no {name}: it has {', '.join(self._values)}"
            ) from None

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"
