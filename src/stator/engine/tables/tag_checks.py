"""Checks the tags of TagResource, UntagResource and CreateTable. One bad tag refuses them all."""

from __future__ import annotations

import unicodedata
from typing import Any

from stator.errors import ValidationFailed
from stator.model.limits import TAGS

_KEY_LENGTH = 128
_VALUE_LENGTH = 256
_PUNCTUATION = frozenset("+-=._:/@")
_TOO_MANY = "Number of Tags exceed the current limit for the provided ResourceArn"


def read_tags(tags: list[dict[str, Any]]) -> dict[str, str]:
    """Check the tags of a request, and return their values by key, in the request's order."""
    read: dict[str, str] = {}
    for tag in tags:
        key, value = tag.get("Key"), tag.get("Value")
        _check_key(key)
        if value is None or len(value) > _VALUE_LENGTH or not _is_allowed(value):
            raise ValidationFailed(f"The Tag Value provided is invalid, Value: {_shown(value)}")
        if key in read:
            raise ValidationFailed(
                f"Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}"
            )
        read[str(key)] = value
    check_count(len(read))
    return read


def check_keys(keys: list[str]) -> None:
    for key in keys:
        _check_key(key)
    check_count(len(keys))


def check_count(count: int) -> None:
    if count > TAGS:
        raise ValidationFailed(_TOO_MANY)


def _check_key(key: str | None) -> None:
    if not key or len(key) > _KEY_LENGTH or not _is_allowed(key):
        raise ValidationFailed(f"The Tag Key provided is invalid, Key: {_shown(key)}")
    if key.lower().startswith("aws:"):
        raise ValidationFailed(f"Tag Key cannot be prefixed with aws:, Key: {key}")


def _is_allowed(text: str) -> bool:
    """Whether a text has only letters, digits and spaces of any script, and some punctuation."""
    return all(sign in _PUNCTUATION or unicodedata.category(sign)[0] in "LNZ" for sign in text)


def _shown(text: str | None) -> str:
    return "null" if text is None else text
