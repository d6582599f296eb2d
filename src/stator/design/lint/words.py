"""Numbers as people read them."""

from __future__ import annotations


def amount(number: float) -> str:
    """Three digits matter; thousands are set apart."""
    if number >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.3g}"


def size(size_bytes: float) -> str:
    for unit, bytes_each in (("TB", 1024**4), ("GB", 1024**3), ("MB", 1024**2), ("KB", 1024)):
        if size_bytes >= bytes_each:
            return f"{size_bytes / bytes_each:.3g} {unit}"
    return f"{size_bytes:.0f} bytes"


def dollars(value: float) -> str:
    return f"${value:,.2f}" if value < 1000 else f"${value:,.0f}"


def plural(number: int, word: str) -> str:
    if number == 1:
        return f"1 {word}"
    return f"{number} {word[:-1]}ies" if word.endswith("ty") else f"{number} {word}s"
