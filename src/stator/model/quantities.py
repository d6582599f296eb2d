"""Quantities in the form people read them: numbers, sizes, sums of money, durations.

Every message, report and document formats its quantities here, so that one value reads the same
everywhere. Machine-readable output (``--json``) never passes through this module.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

_SIZE_UNITS = ("KB", "MB", "GB", "TB")
_CENT = Decimal("0.01")


def amount(number: float, *, digits: int = 3) -> str:
    """Format a number with ``digits`` significant digits, but never cut digits before the point.

    Integers are shown in full. With ``digits=3``, 1.2345 becomes ``1.23`` and 12345.6 ``12,346``.
    """
    if number == int(number) or number >= 10 ** (digits - 1):
        return f"{number:,.0f}"
    return f"{number:.{digits}g}"


def size(size_bytes: float) -> str:
    """Format a size in the largest unit it fills, 1,024 bytes to the KB: ``1.5 KB``, ``400 KB``."""
    if size_bytes < 1024:
        return f"{size_bytes:,.0f} bytes"
    power = min((int(size_bytes).bit_length() - 1) // 10, len(_SIZE_UNITS))
    value, unit = size_bytes / 1024**power, _SIZE_UNITS[power - 1]
    text = f"{value:,.2f}" if value < 10 else f"{value:,.1f}"
    return f"{text.rstrip('0').rstrip('.')} {unit}"


def cents(value: float | Decimal) -> str:
    """Format a sum with two decimals: ``1,234.50``. Half a cent is rounded up.

    Format specifications round a float by its binary value and a Decimal to the even digit, so the
    same $3.285 would be 3.29 in one place and 3.28 in another.
    """
    exact = value if isinstance(value, Decimal) else Decimal(repr(round(value, 9)))
    return f"{exact.quantize(_CENT, ROUND_HALF_UP):,}"


def dollars(value: float | Decimal) -> str:
    """Format a sum to the cent. Less than half a cent is shown as ``< $0.01``, not as zero."""
    return "< $0.01" if 0 < value < 0.005 else f"${cents(value)}"


def about_dollars(value: float | Decimal) -> str:
    """Format an estimated sum: to the cent below $1,000, to the dollar above."""
    return dollars(value) if value < 1000 else f"${value:,.0f}"


def signed_dollars(value: float | Decimal) -> str:
    """Format a difference to the cent: ``+$1.20``, ``-$3.00``."""
    return f"{'+' if value >= 0 else '-'}${cents(value if value >= 0 else -value)}"


def duration(seconds: float) -> str:
    """Format a duration: ``4.2 s``, ``3 min 12 s``, ``2 h 5 min``. The largest unit is the hour."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    hours, rest = divmod(whole, 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s"


def plural(number: int, word: str) -> str:
    """Format a count with its noun: ``1 read``, ``3 entities``, ``2 indexes``."""
    if number == 1:
        return f"1 {word}"
    if word.endswith("y") and word[-2] not in "aeiou":
        word = f"{word[:-1]}ie"
    elif word.endswith(("s", "x", "ch", "sh")):
        word += "e"
    return f"{number:,} {word}s"
