"""The entries of an audit log, and what makes them verifiable.

An entry is a JSON text with sorted names; it holds its number in its item's chain, and the hash of the entry before it. Its own hash is the SHA-256 of that text, or the
HMAC-SHA256 with a secret.

    {"after":{…},"before":{…},"changed":["status"],"entity":"Order","expired":false,"id":"8f0c…","key":{…},"kind":"MODIFY",
     "number":2,"previous":"5c0a…","sequence":"1000…42","table":"shop","time":"2026-11-16T08:12:40Z","who":"anna"}
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stator.errors import ConfigurationError
from stator.model.values import Item
from stator.patterns.plain_values import decode_plain

BEGINNING: Final = "0" * 64
_FORMAT: Final = "stator-audit-seal-1"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who did what to an item, when, and how it was before and after."""

    number: int
    who: str | None
    kind: str
    at: str
    table: str
    entity: str | None
    key: dict[str, Any]
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    changed: tuple[str, ...]
    expired: bool
    event_id: str
    sequence: str
    hash: str


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The last entry of a chain."""

    number: int = 0
    hash: str = BEGINNING
    sequence: str = "0"


@dataclass(frozen=True, slots=True)
class AuditProblem:
    """``chain`` is the item's table and key mark, ``number`` the entry's, 0 for the chain as a whole."""

    chain: str
    number: int
    what: str

    def __str__(self) -> str:
        return (
            f"{self.chain}, entry {self.number}: {self.what}"
            if self.number
            else f"{self.chain}: {self.what}"
        )


@dataclass(slots=True)
class AuditReport:
    chains: int = 0
    entries: int = 0
    problems: list[AuditProblem] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Seal:
    """Where every chain stood at a moment. Kept out of reach of those who can write the table, it shows what they took away since."""

    heads: Mapping[str, tuple[int, str]]

    def dumps(self) -> str:
        return json.dumps(
            {"format": _FORMAT, "heads": dict(sorted(self.heads.items()))}, separators=(",", ":")
        )

    @classmethod
    def loads(cls, text: str | bytes) -> Seal:
        try:
            given = json.loads(text)
            if given["format"] != _FORMAT:
                raise ValueError(given["format"])
            return cls(
                {
                    chain: (int(number), str(digest))
                    for chain, (number, digest) in given["heads"].items()
                }
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"this is no seal of an audit log: {error}", hint="as seal.dumps() gave it"
            ) from None

    @property
    def digest(self) -> str:
        """Short enough to be printed, signed or sent: whoever has it can tell whether a seal is this one."""
        return hashlib.sha256(self.dumps().encode()).hexdigest()


def entry_text(content: Mapping[str, Any], number: int, previous: str) -> str:
    made = {**content, "number": number, "previous": previous}
    return json.dumps(made, sort_keys=True, separators=(",", ":"))


def entry_hash(text: str, secret: bytes | None) -> str:
    if secret is None:
        return hashlib.sha256(text.encode()).hexdigest()
    return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()


def read_entry(text: str, digest: str) -> AuditEntry:
    content = json.loads(text)
    return AuditEntry(
        content["number"],
        content["who"],
        content["kind"],
        content["time"],
        content["table"],
        content["entity"],
        _plain(content["key"]) or {},
        _plain(content["before"]),
        _plain(content["after"]),
        tuple(content["changed"]),
        content["expired"],
        content["id"],
        content["sequence"],
        digest,
    )


def _plain(item: Item | None) -> dict[str, Any] | None:
    return None if item is None else {name: decode_plain(value) for name, value in item.items()}


class ChainCheck:
    """One chain, entry by entry."""

    def __init__(self, chain: str, secret: bytes | None, sealed: tuple[int, str] | None) -> None:
        self.chain = chain
        self.problems: list[AuditProblem] = []
        self.head = ChainHead()
        self._secret = secret
        self._sealed = sealed

    def add(self, number: int, text: str, digest: str) -> None:
        if number != self.head.number + 1:
            self._problem(self.head.number + 1, f"missing: the next entry is {number}")
        try:
            content = json.loads(text)
            previous, sequence, own = (
                content["previous"],
                str(content["sequence"]),
                content["number"],
            )
        except (ValueError, KeyError, TypeError):
            self._problem(number, "changed: it cannot be read")
            self.head = ChainHead(number, digest, self.head.sequence)
            return
        if not hmac.compare_digest(entry_hash(text, self._secret), digest):
            self._problem(number, "changed: its hash is another")
        if own != number:
            self._problem(number, f"moved: it was written as entry {own}")
        if previous != self.head.hash and number == self.head.number + 1:
            self._problem(number, "it does not follow from the entry before it")
        if int(sequence) < int(self.head.sequence):
            self._problem(number, "it is of an earlier change than the entry before it")
        if self._sealed is not None and self._sealed[0] == number and self._sealed[1] != digest:
            self._problem(number, "rewritten: its hash is not the sealed one")
        self.head = ChainHead(number, digest, sequence)

    def end(self, told: ChainHead | None) -> None:
        """``told`` is what the chain's head says."""
        if told is None:
            self._problem(0, "its head is missing")
        elif (told.number, told.hash) != (self.head.number, self.head.hash):
            self._problem(
                0, f"its head tells of {told.number} entries, and there are {self.head.number}"
            )
        elif told.sequence != self.head.sequence:
            self._problem(0, "its head tells of another change than its last entry")
        if self._sealed is not None and self._sealed[0] > self.head.number:
            self._problem(
                0,
                f"entries are missing: {self._sealed[0]} were sealed, and there are {self.head.number}",
            )

    def _problem(self, number: int, what: str) -> None:
        self.problems.append(AuditProblem(self.chain, number, what))
