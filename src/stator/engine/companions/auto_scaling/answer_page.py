"""Pages of the answers of Application Auto Scaling."""

from __future__ import annotations

from typing import Any, Final

from stator.engine.companions.auto_scaling.target_key import VALIDATION
from stator.engine.companions.cloudwatch.page_tokens import page_of
from stator.errors import CompanionRefused

_LARGEST: Final = 50


def page(name: str, entries: list[dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with a page of entries, and a NextToken if there are more."""
    size = request.get("MaxResults", _LARGEST)
    if not 1 <= size <= _LARGEST:
        raise CompanionRefused(
            VALIDATION, f"MaxResults must be between 1 and {_LARGEST}; it is {size}."
        )
    asked = {member: value for member, value in request.items() if member != "MaxResults"}
    found, more = page_of(entries, asked, size, code="InvalidNextTokenException")
    return {name: found, **more}
