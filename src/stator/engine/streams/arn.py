"""Stream ARNs: arn:aws:dynamodb:<region>:<account>:table/<name>/stream/<label>."""

from __future__ import annotations

import re

from stator.errors import ValidationFailed

_FORM = re.compile(r"arn:aws[a-z-]*:dynamodb:[^:/]+:\d{12}:table/[a-zA-Z0-9_.-]+/stream/.+")


def check_stream_arn(text: str) -> None:
    """AWS refuses what has not the form, where DynamoDB Local says that there is no such stream (Alternator's tests on AWS)."""
    if _FORM.fullmatch(text) is None:
        raise ValidationFailed("Invalid StreamArn")
