"""The entries of an audit log, and the hashes that make them verifiable.

An entry is JSON with sorted keys. It holds its number in its item's chain and the hash of the
previous entry. Its own hash is the SHA-256 of the JSON text or, if a secret is set, its
HMAC-SHA256.

    {"after":{...},"before":{...},"changed":["status"],"entity":"Order","expired":false,
     "id":"8f0c...","key":{...},"kind":"MODIFY","number":2,"previous":"5c0a...",
     "sequence":"1000...42","table":"shop","time":"2026-11-16T08:12:40Z","who":"anna"}
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stator.design.plan.html_table import html_table
from stator.errors import ConfigurationError
from stator.model.quantities import plural
from stator.model.values import Item
from stator.patterns.plain_values import decode_plain

BEGINNING: Final = "0" * 64
_FORMAT: Final = "stator-audit-seal-1"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of an audit log: who did what to an item, when, and the item before and after."""

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
    """The number and hash of a chain's last entry, and the sequence number of its change."""

    number: int = 0
    hash: str = BEGINNING
    sequence: str = "0"


@dataclass(frozen=True, slots=True)
class AuditProblem:
    """A fault that verification found in an audit log.

    ``chain`` names the item: its table and a hash of its key. ``number`` is the number of the
    entry, or 0 for a problem of the whole chain.
    """

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
    """The result of checking an audit log against its chain of checksums."""

    chains: int = 0
    entries: int = 0
    problems: list[AuditProblem] = field(default_factory=list)

    def _repr_html_(self) -> str:
        """Return the problems for a notebook, below the counts."""
        return html_table(
            f"{'sound' if self.is_sound else 'not sound'}: {plural(self.entries, 'entry')} in "
            f"{plural(self.chains, 'chain')}",
            ("chain", "entry", "problem"),
            ((each.chain, each.number or "", each.what) for each in self.problems),
        )

    @property
    def is_sound(self) -> bool:
        """Whether no entry is missing, changed or out of order."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Seal:
    """The heads of all chains at one moment: for each chain, the number and hash of its last entry.

    Store a seal where the people who can write the table cannot change it. ``verify`` can then
    prove what was changed or removed since.
    """

    heads: Mapping[str, tuple[int, str]]

    def dumps(self) -> str:
        """Return the seal as one line of JSON, to be stored outside of the table."""
        return json.dumps(
            {"format": _FORMAT, "heads": dict(sorted(self.heads.items()))}, separators=(",", ":")
        )

    @classmethod
    def loads(cls, text: str | bytes) -> Seal:
        """Read a seal that ``dumps`` wrote."""
        try:
            content = json.loads(text)
            if content["format"] != _FORMAT:
                raise ValueError(content["format"])
            return cls(
                {
                    chain: (int(number), str(digest))
                    for chain, (number, digest) in content["heads"].items()
                }
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"the text is not a seal of an audit log: {error}",
                hint="pass the text that seal.dumps() returned",
            ) from None

    @property
    def digest(self) -> str:
        """Return a short text that identifies this seal, to print, sign or send."""
        return hashlib.sha256(self.dumps().encode()).hexdigest()


def entry_text(content: Mapping[str, Any], number: int, previous: str) -> str:
    entry = {**content, "number": number, "previous": previous}
    return json.dumps(entry, sort_keys=True, separators=(",", ":"))


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
    """Verifies the audit chain of one item. Call ``add`` with its entries in order, then ``end``.

    ``problems`` lists the faults that were found.
    """

    def __init__(self, chain: str, secret: bytes | None, sealed: tuple[int, str] | None) -> None:
        self.chain = chain
        self.problems: list[AuditProblem] = []
        self.head = ChainHead()
        self._secret = secret
        self._sealed = sealed

    def add(self, number: int, text: str, digest: str) -> None:
        if number != self.head.number + 1:
            self._problem(self.head.number + 1, f"missing: the next entry is number {number}")
        try:
            content = json.loads(text)
            previous, sequence, own = (
                content["previous"],
                str(content["sequence"]),
                content["number"],
            )
        except (ValueError, KeyError, TypeError):
            self._problem(number, "changed: it is not a readable entry")
            self.head = ChainHead(number, digest, self.head.sequence)
            return
        if not hmac.compare_digest(entry_hash(text, self._secret), digest):
            self._problem(number, "changed: its hash does not match its text")
        if own != number:
            self._problem(number, f"moved: it was written as entry {own}")
        if previous != self.head.hash and number == self.head.number + 1:
            self._problem(number, "it does not follow from the previous entry")
        if int(sequence) < int(self.head.sequence):
            self._problem(number, "its change is earlier than that of the previous entry")
        if self._sealed is not None and self._sealed[0] == number and self._sealed[1] != digest:
            self._problem(number, "rewritten: its hash differs from the sealed one")
        self.head = ChainHead(number, digest, sequence)

    def end(self, stored: ChainHead | None) -> None:
        """Compare the last added entry with the stored head and with the seal. Record problems."""
        if stored is None:
            self._problem(0, "its head is missing")
        elif (stored.number, stored.hash) != (self.head.number, self.head.hash):
            self._problem(
                0, f"its head records {stored.number} entries, but there are {self.head.number}"
            )
        elif stored.sequence != self.head.sequence:
            self._problem(0, "its head records another change than its last entry")
        if self._sealed is not None and self._sealed[0] > self.head.number:
            self._problem(
                0,
                f"entries are missing: {self._sealed[0]} were sealed,"
                f" but there are {self.head.number}",
            )

    def _problem(self, number: int, what: str) -> None:
        self.problems.append(AuditProblem(self.chain, number, what))
