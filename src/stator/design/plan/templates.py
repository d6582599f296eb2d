"""Key templates: the text of a key with holes for values, filled from an item or from the arguments of a pattern.

    PK  "USER#" {user_id}            SK  "ORDER#" {placed_at: datetime} "#" {order_id}

A template is data: it is frozen into the lock file and works without the classes it was planned from. One that is ``native`` has a
single hole and is the attribute's own value, in DynamoDB's own type; any other is a string.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from stator.design.entities.shapes import Scalar
from stator.design.entities.wire import WrongValue, encode_anything, encoder
from stator.design.plan import key_text as keys
from stator.design.planner.shards import shard_of, shard_text
from stator.errors import DesignError
from stator.model.values import Value


@dataclass(frozen=True, slots=True)
class Part:
    """``text`` stands for itself; ``field`` and ``param`` are holes; ``shard`` is computed from the parts it is ``of``,
    or, with none, stands for each shard in turn."""

    kind: Literal["text", "field", "param", "shard"]
    value: str = ""
    encoding: str = ""
    inverted: bool = False
    step: int = 0
    shards: int = 1
    of: tuple[Part, ...] = ()

    def __str__(self) -> str:
        return {"text": self.value, "shard": "{shard}"}.get(self.kind, f"{{{self.value}}}")

    def fill(self, values: Mapping[str, Any], shard: int | None) -> str | None:
        if self.kind == "text":
            return self.value
        if self.kind == "shard":
            return self._fill_shard(values, shard)
        value = stepped(self, values[self.value])
        return None if value is None else keys.encode(self.encoding, value, inverted=self.inverted)

    def _fill_shard(self, values: Mapping[str, Any], shard: int | None) -> str | None:
        if not self.of:
            assert shard is not None
            return shard_text(shard, self.shards)
        texts = [part.fill(values, shard) for part in self.of]
        return shard_text(shard_of(keys.SEPARATOR.join(map(str, texts)), self.shards), self.shards)


def stepped(part: Part, value: Any) -> Any:
    """The value just above or below, where a bound is not included."""
    if not part.step or value is None:
        return value
    step = keys.encoding_named(part.encoding).step
    assert step is not None
    return step(keys.plain(value), part.step)


def text(value: str) -> Part:
    return Part("text", value)


@dataclass(frozen=True, slots=True)
class Template:
    parts: tuple[Part, ...]
    native: bool = False

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    @property
    def is_open(self) -> bool:
        """Nothing but a value of DynamoDB's own type."""
        return self.native and self.parts[0].kind != "text"

    def fill(self, values: Mapping[str, Any], shard: int | None = None) -> Value | None:
        """The attribute's value; None when a value it is made of is None."""
        if self.native:
            [part] = self.parts
            if part.kind == "text":
                return {str(keys.encoding_named(part.encoding).native): part.value}
            value = stepped(part, values[part.value])
            return None if value is None else wire_value(part.encoding, value)
        texts = [part.fill(values, shard) for part in self.parts]
        return None if any(each is None for each in texts) else {"S": "".join(map(str, texts))}


def wire_value(encoding: str, value: Any) -> Value:
    """A value as DynamoDB JSON. The encoding ``any`` goes by what the value is."""
    try:
        if encoding == "any":
            return encode_anything(keys.plain(value))
        return encoder(Scalar(keys.encoding_named(encoding).python))(keys.plain(value))
    except WrongValue as error:
        raise DesignError(
            f"{error.wanted}: {error.value!r}", hint="pass a value of the field's type"
        ) from None
