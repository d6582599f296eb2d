"""The form of a key's text: repeated words, and values between separators."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_SEPARATORS: Final = ("#", "|", "::", ":", "/")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_-]*\Z")
_FEW: Final = 30


@dataclass(frozen=True, slots=True)
class KeyShape:
    """The parts of a key: each is a word, or None for a value.

    USER#17 has ``("USER", None)``. ``separator`` is empty for a key without a separator.
    """

    parts: tuple[str | None, ...]
    separator: str

    def values(self, text: str) -> list[str]:
        """Return the values in a key of this shape, in order."""
        pieces = text.split(self.separator) if self.separator else [text]
        return [piece for piece, word in zip(pieces, self.parts) if word is None]

    def filled(self, names: Iterable[str]) -> str:
        """Return the template of this shape, with these names for its values."""
        following = iter(names)
        return self.separator.join(
            f"{{{next(following)}}}" if word is None else word for word in self.parts
        )

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for word in self.parts if word is not None)


def shapes_of(texts: list[str]) -> dict[str, KeyShape]:
    """Return the shape of each distinct key.

    A piece is a word if it looks like one and few different pieces occur in its place.
    """
    separator = separator_of(texts)
    distinct = sorted(set(texts))
    words = _words(distinct, separator)
    return {text: _shape(text, separator, words) for text in distinct}


def separator_of(texts: Iterable[str]) -> str:
    """Return the separator that most keys contain, or an empty string if none does."""
    counts = Counter({mark: sum(mark in text for text in texts) for mark in _SEPARATORS})
    mark, found = max(counts.items(), key=lambda each: (each[1], -_SEPARATORS.index(each[0])))
    return mark if found else ""


def _words(texts: list[str], separator: str) -> set[tuple[int, str]]:
    """Return the pieces that are words, each with its position in the key.

    A word looks like one, and few different words occur in its position. It is also repeated, or
    written in capitals, or followed by a separator at the start of a key. A whole key without
    separators can be a word, too.
    """
    seen: Counter[tuple[int, str]] = Counter()
    for text in texts:
        seen.update(enumerate(text.split(separator) if separator else [text]))
    reading = {
        at: {piece for place, piece in seen if place == at and _WORD.match(piece)} for at, _ in seen
    }
    alone = {text for text in texts if not separator or separator not in text}
    found = set()
    for (at, piece), count in seen.items():
        is_word = piece in reading[at] and len(reading[at]) <= _FEW
        if is_word and (
            count > 1 or (at == 0 and (separator and piece not in alone)) or piece.isupper()
        ):
            found.add((at, piece))
    return found


def _shape(text: str, separator: str, words: set[tuple[int, str]]) -> KeyShape:
    pieces = text.split(separator) if separator else [text]
    parts = tuple(piece if (at, piece) in words else None for at, piece in enumerate(pieces))
    return KeyShape(parts, separator if len(pieces) > 1 else "")
