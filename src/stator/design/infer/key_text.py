"""The form of a key's text: repeated words, and values between separators.

``ORDER#2026-01-01T10:00:00Z#o1`` is the word ORDER and two values. Words and values take turns: a
value follows each word, unless the word is a usual constant (``#METADATA``, ``PROFILE``). ``#``,
``|`` and ``::`` separate wherever they occur. ``:`` and ``/`` also occur inside of times, paths and
addresses, so they separate only after a word that many keys begin with (``user:17``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_SAY_NOTHING: Final = frozenset(
    {"METADATA", "META", "INFO", "DETAILS", "DETAIL", "DATA", "ROOT", "SELF", "HEADER", "A"}
)
CONSTANTS: Final = _SAY_NOTHING | {
    "PROFILE", "ITEM", "SUMMARY", "SETTINGS", "CONFIG", "STATE", "LATEST", "CURRENT",
}  # fmt: skip
"""Words that are often a whole key."""
_STRONG: Final = ("#", "|", "::")
_WEAK: Final = (":", "/")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_-]*\Z")
_FEW: Final = 30
_FEW_CONSTANTS: Final = 5


@dataclass(frozen=True, slots=True)
class KeyShape:
    """The shape of a key as a tuple: each part is a word, or None for a value.

    USER#17 has ``("USER", None)``. ``separator`` is empty for a key without a separator.
    """

    parts: tuple[str | None, ...]
    separator: str

    def values(self, text: str) -> list[str]:
        """Return the values in a key of this shape, in order."""
        pieces = text.split(self.separator) if self.separator else [text]
        return [piece for piece, word in zip(pieces, self.parts) if word is None]

    def filled(self, names: Iterable[str]) -> str:
        """Return the template of this shape, with a name for each value: ``USER#{user_id}``."""
        following = iter(names)
        return self.separator.join(
            f"{{{next(following)}}}" if word is None else word for word in self.parts
        )

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for word in self.parts if word)

    @property
    def telling(self) -> tuple[str, ...]:
        """The words that show what kind of item has the key, such as USER.

        METADATA says nothing about the kind and is left out. So is ITEM, unless a value follows it.
        """
        following = (*self.parts[1:], "")
        return tuple(
            word
            for word, after in zip(self.parts, following)
            if word
            and word.upper() not in _SAY_NOTHING
            and (after is None or word.upper() not in CONSTANTS)
        )

    @property
    def is_value(self) -> bool:
        """Whether the whole key is one value."""
        return self.parts == (None,)

    @property
    def is_writable(self) -> bool:
        """Whether Stator can write a key of this shape: after a value, only ``#`` separates."""
        before_last = self.parts[:-1]
        return self.separator in ("", "#") or None not in before_last


VALUE: Final = KeyShape((None,), "")


def shapes_of(texts: Sequence[str], *, generic: bool = True) -> dict[str, KeyShape]:
    """Return the shape of each distinct key. ``texts`` has the key of each item.

    ``generic`` means that the attribute exists only to hold keys, as PK does. Words in the values
    of other attributes, such as a country, are rarely constants.
    """
    counts = Counter(texts)
    separator = separator_of(list(counts))
    pieces = {text: text.split(separator) if separator else [text] for text in counts}
    first = _first_words(pieces, separator)
    single = _constants(
        {text: count for text, count in counts.items() if len(pieces[text]) == 1}, generic
    )
    labels = _labels(pieces, first)
    found = {}
    for text, several in pieces.items():
        if len(several) == 1:
            found[text] = KeyShape((text,), "") if text in single else VALUE
        else:
            found[text] = KeyShape(_parts(several, first, labels), separator)
    return found


def separator_of(texts: Sequence[str]) -> str:
    """Return the separator that most keys contain, or an empty string if none does."""
    counts = {mark: sum(mark in text for text in texts) for mark in _STRONG}
    counts |= {mark: _weak_count(texts, mark) for mark in _WEAK}
    marks = (*_STRONG, *_WEAK)
    mark, found = max(counts.items(), key=lambda each: (each[1], -marks.index(each[0])))
    strong = next((each for each in _STRONG if counts[each]), None)
    return (strong or mark) if found else ""


def _weak_count(texts: Sequence[str], mark: str) -> int:
    """Return how many keys a weak separator (``:`` or ``/``) divides.

    A weak separator divides keys only after a word in capitals or, for ``:``, after a word that at
    least two keys begin with. Returns 0 if the separator belongs to values, as in a URL.
    """
    divided = [text.partition(mark) for text in texts if mark in text]
    heads = Counter(head for head, _, _ in divided)
    if not heads or len(heads) > _FEW_CONSTANTS:
        return 0
    if not all(_WORD.match(head) and not rest.startswith("//") for head, _, rest in divided):
        return 0
    capitals = all(head.isupper() for head in heads)
    return len(divided) if capitals or (mark == ":" and min(heads.values()) > 1) else 0


def _first_words(pieces: dict[str, list[str]], separator: str) -> set[str]:
    """Return the words that keys begin with: USER for ``USER#17``.

    Keys without a separator are ignored. ``pieces`` has the pieces of each key.
    """
    heads = Counter(several[0] for several in pieces.values() if len(several) > 1)
    words = {head for head in heads if _WORD.match(head)}
    if len(words) > _FEW:
        return {head for head in words if head.isupper() and heads[head] > 1}
    lower_values = {head for head in words if not head.isupper() and heads[head] == 1}
    many_lower = len(lower_values) > _FEW_CONSTANTS
    return words - lower_values if many_lower else words


def _constants(counts: dict[str, int], generic: bool) -> set[str]:
    """Return the keys without a separator that are constants, such as PROFILE, not values.

    ``counts`` has the number of items with each key.
    """
    if not generic:
        return {text for text in counts if text in CONSTANTS}
    capitals = {text for text in counts if _WORD.match(text) and text.isupper()}
    if len(capitals) > _FEW:
        capitals &= CONSTANTS
    lower = {text for text in counts if _WORD.match(text) and not text.isupper()}
    if len(lower) <= _FEW_CONSTANTS and all(counts[text] > 2 for text in lower):
        return capitals | lower
    return capitals


Labels = set[tuple[str, int, int, str]]
"""A first piece, the number of pieces, a position, and the word there: ("USER", 4, 2, "ORDER")."""


def _labels(pieces: dict[str, list[str]], first: set[str]) -> Labels:
    """Return the words that follow the first piece of keys, such as ORDER in ``USER#17#ORDER#o1``.

    Keys are compared if they have the same number of pieces and the same first word, or no first
    word. A position holds words if every piece there looks like a word, at most ``_FEW_CONSTANTS``
    of them are different, and one of two rules holds:

    - The position is the second or follows a word, and it is not the last. At least three keys are
      compared, and all have the same word at the position.
    - The position follows a value. Its words are all in capitals, or occur more than twice on
      average. A word with small letters occurs at least twice.
    """
    columns: dict[tuple[str, int, int], Counter[str]] = {}
    for several in pieces.values():
        head = several[0] if several[0] in first or not several[0] else ""
        for at, piece in enumerate(several[1:], 1):
            columns.setdefault((head, len(several), at), Counter())[piece] += 1
    found: Labels = set()
    for (head, size, at), counts in columns.items():
        total = sum(counts.values())
        if len(counts) > _FEW_CONSTANTS or not all(map(_WORD.match, counts)):
            continue
        follows_word = at == 1 or all(
            (head, size, at - 1, piece) in found for piece in columns[(head, size, at - 1)]
        )
        is_last = at == size - 1
        if follows_word:
            is_word = len(counts) == 1 and total > 2 and not is_last
        else:
            is_word = all(piece.isupper() or count > 1 for piece, count in counts.items()) and (
                all(map(str.isupper, counts)) or total > 2 * len(counts)
            )
        if is_word:
            found |= {(head, size, at, piece) for piece in counts}
    return found


def _parts(pieces: list[str], first: set[str], labels: Labels) -> tuple[str | None, ...]:
    head = pieces[0] if pieces[0] in first or not pieces[0] else ""
    found: list[str | None] = []
    for at, piece in enumerate(pieces):
        is_word = (
            not piece
            or (at == 0 and piece in first)
            or (at > 0 and piece in CONSTANTS and piece != "A")
            or (at > 0 and (head, len(pieces), at, piece) in labels)
        )
        found.append(piece if is_word else None)
    return tuple(found)
