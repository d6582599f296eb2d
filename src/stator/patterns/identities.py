"""Identities as key text: an object, or the values of its identity fields, become the part of a key that stands for it, and back."""

from __future__ import annotations

from typing import Any

from stator.design.entities.entity import EntityInfo
from stator.design.plan import key_text as keys
from stator.errors import DesignError, RequestRefused


class Identities:
    """The identities of one entity. ``text("f1")`` and ``text(Folder(folder_id="f1", ...))`` are the same."""

    def __init__(self, info: EntityInfo) -> None:
        self.info = info
        self._encodings = [encoding_name(info, field) for field in info.identity]

    def owns(self, given: Any) -> bool:
        """Whether it is an object of the entity."""
        return isinstance(given, self.info.cls) or type(given) is getattr(self.info, "model", None)

    def values(self, given: Any) -> tuple[Any, ...]:
        if self.owns(given):
            return tuple(getattr(given, field) for field in self.info.identity)
        if len(self._encodings) == 1:
            return (given,)
        if not isinstance(given, tuple) or len(given) != len(self._encodings):
            raise RequestRefused(
                f"{given!r} does not say which {self.info.name} is meant",
                hint=f"pass an object, or a tuple of {', '.join(self.info.identity)}",
            )
        return given

    def text(self, given: Any) -> str:
        return keys.join(self._encodings, self.values(given))

    def value(self, text: str) -> Any:
        """What the text was made of: the value where one field is the identity, else a tuple."""
        values = keys.split(self._encodings, text)
        return values[0] if len(values) == 1 else values


def encoding_name(info: EntityInfo, field: str) -> str:
    """How values of a field are written in keys."""
    encoding = keys.encoding_of(info.fields[field].shape)
    if encoding is None:
        raise DesignError(
            f"{info.name}.{field} cannot be part of a key: values of its type have no order",
            hint="use text, a number, a time or a UUID",
        )
    return encoding.name
