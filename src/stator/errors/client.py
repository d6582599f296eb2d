"""Errors between a client and the service: connections, lost replies and credentials."""

from __future__ import annotations

from typing import ClassVar

from stator.errors.base import StatorError


class ConnectionTrouble(StatorError):
    """The client got no reply, or none that it can trust.

    If ``retryable`` is True, another attempt may succeed. If ``sent`` is True, the request may have
    reached the service, and the service may have carried it out.
    """

    retryable: ClassVar[bool] = True
    sent: bool = False


class Unreachable(ConnectionTrouble):
    """No connection could be opened, so nothing was sent."""


class ReplyLost(ConnectionTrouble):
    """The connection broke or timed out after the request was sent."""

    sent = True


class ReplyDamaged(ConnectionTrouble):
    """The reply is not valid HTTP or JSON, or its checksum does not match its body."""

    sent = True


class OutcomeUnknown(ConnectionTrouble):
    """A write may or may not have happened, and sending it again could apply it twice.

    ``__cause__`` is the error that hid the outcome.
    """

    retryable = False
    sent = True
    hint = (
        "read the item to see whether the write happened; a write with once=True can be repeated "
        "safely, at twice the write units"
    )


class DeadlineExceeded(ConnectionTrouble):
    """``deadline_seconds`` passed before a reply arrived."""

    retryable = False
    sent = True


class CredentialsMissing(StatorError):
    """boto3's credential chain has no AWS credentials, or could not fetch them."""

    hint = (
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a profile with AWS_PROFILE, or "
        "run `aws sso login`"
    )
