"""Pages of the answers of Application Auto Scaling."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol

from stator.engine.companions.auto_scaling.target_key import (
    VALIDATION,
    TargetKey,
    check_place,
    names_key,
)
from stator.engine.companions.cloudwatch.page_tokens import page_of
from stator.engine.companions.companion import CompanionCall
from stator.errors import CompanionRefused

_LARGEST: Final = 50


class Described(Protocol):
    """What has a scalable target and a name: a policy or a scheduled action."""

    @property
    def key(self) -> TargetKey: ...

    @property
    def name(self) -> str: ...

    def described(self) -> dict[str, Any]: ...


def described_page(
    member: str,
    names: str,
    entries: Iterable[Described],
    call: CompanionCall,
    request: dict[str, Any],
) -> dict[str, Any]:
    """Return a page of those of the caller's entries that a request asks for, in order.

    ``names`` is the member of the request that lists names.
    """
    check_place(request)
    found = [
        entry
        for entry in entries
        if entry.key.scope == call.scope
        and names_key(request, entry.key)
        and entry.name in request.get(names, [entry.name])
    ]
    found.sort(key=lambda each: (each.key.resource_id, each.key.dimension, each.name))
    return page(member, [each.described() for each in found], request)


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
