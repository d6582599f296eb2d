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
    """Return the shape of each distinct key: which of its pieces are words and which are values.

    See ``_words`` for the rules.
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
    """Return the pieces of keys that are constant words, each with its position in the key.

    A piece is a word if all of these hold: it has the form of a word, few such pieces occur in its
    position, and there is a further sign. The sign is that the piece is repeated, is in capitals,
    or is the first of several pieces of its key. A whole key without separators can be a word, too.
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
