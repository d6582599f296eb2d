"""Between a client and the service."""

from __future__ import annotations

from typing import ClassVar

from stator.errors.base import StatorError


class ConnectionTrouble(StatorError):
    """``retryable`` says whether trying again may help; ``sent`` whether the request may have been carried out."""

    retryable: ClassVar[bool] = True
    sent: bool = False


class Unreachable(ConnectionTrouble):
    """Nothing was sent."""


class ReplyLost(ConnectionTrouble):
    sent = True


class ReplyDamaged(ConnectionTrouble):
    sent = True


class OutcomeUnknown(ConnectionTrouble):
    """The cause is the trouble behind it."""

    retryable = False
    sent = True
    hint = "read the item to see, or ask for the update with once=True, which costs twice the write units"


class DeadlineExceeded(ConnectionTrouble):
    retryable = False
    sent = True


class CredentialsMissing(StatorError):
    hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a profile with AWS_PROFILE, or run `aws sso login`"
