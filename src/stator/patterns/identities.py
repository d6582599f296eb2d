"""Identities as key text: encodes an object's identity as part of a key, and decodes it again."""

from __future__ import annotations

from typing import Any

from stator.design.entities.entity import EntityInfo
from stator.design.plan import key_text as keys
from stator.errors import DesignError, RequestRefused


class Identities:
    """Encodes the identities of one entity as key text.

    The methods accept an object in place of its identity: ``text(folder)`` equals ``text("f1")``
    if ``folder.folder_id`` is "f1".
    """

    def __init__(self, info: EntityInfo) -> None:
        self.info = info
        self._encodings = [encoding_name(info, field) for field in info.identity]

    def owns(self, given: Any) -> bool:
        """Whether ``given`` is an object of this entity, and not just an identity."""
        return isinstance(given, self.info.cls) or type(given) is getattr(self.info, "model", None)

    def values(self, given: Any) -> tuple[Any, ...]:
        if self.owns(given):
            return tuple(getattr(given, field) for field in self.info.identity)
        if len(self._encodings) == 1:
            return (given,)
        if not isinstance(given, tuple) or len(given) != len(self._encodings):
            raise RequestRefused(
                f"{_shown(given)} is not an identity of {self.info.name}",
                hint=f"pass an object, or a tuple of {', '.join(self.info.identity)}",
            )
        return given

    def text(self, given: Any) -> str:
        return keys.join(self._encodings, self.values(given))

    def value(self, text: str) -> Any:
        """Return the identity that ``text`` encodes; a tuple if the identity has several fields."""
        values = keys.split(self._encodings, text)
        return values[0] if len(values) == 1 else values


def _shown(given: Any) -> str:
    """Return the type of ``given``, such as "a str", for the error about a wrong identity.

    The error does not show the values, because they may be confidential.
    """
    return f"a tuple of {len(given)}" if isinstance(given, tuple) else f"a {type(given).__name__}"


def encoding_name(info: EntityInfo, field: str) -> str:
    """Return the name of the encoding that turns a field's values into key text.

    Raises DesignError if values of the field's type, such as a list, have no order.
    """
    encoding = keys.encoding_of(info.fields[field].shape)
    if encoding is None:
        raise DesignError(
            f"{info.name}.{field} cannot be part of a key: values of its type have no order",
            hint="use text, a number, a time or a UUID as the field's type",
        )
    return encoding.name
