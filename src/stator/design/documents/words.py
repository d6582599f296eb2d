"""Numbers as people read them."""

from __future__ import annotations

from decimal import Decimal


def dollars_shown(dollars: Decimal) -> str:
    return "< $0.01" if 0 < dollars < Decimal("0.005") else f"${dollars:,.2f}"


def count_shown(count: float) -> str:
    return f"{count:,.0f}" if count == int(count) else f"{count:,.4g}"


def bytes_shown(size: float) -> str:
    return f"{size:,.0f} bytes" if size < 1024 else f"{size / 1024:,.1f} KB"
