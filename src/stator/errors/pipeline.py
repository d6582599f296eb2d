"""Streams and bulk jobs."""

from __future__ import annotations

from stator.errors.base import StatorError


class StreamError(StatorError):
    """What stream workers and their handlers cannot do."""


class StreamMissing(StreamError):
    """The table has no stream, or one whose view type shows too little."""


class ImageNotShown(StreamError):
    """A handler asks for an image that the stream does not show."""

    def __init__(self, view: str) -> None:
        super().__init__(
            "the stream does not show this image",
            hint=f"its view type must be {view} or NEW_AND_OLD_IMAGES",
        )


class NotAnEntity(StreamError):
    """A handler asks for the entity of an item that is none of the design's."""


class TryLater(StreamError):
    """Raised by a handler whose change is not at fault: what it needs is away. It is tried again for as long as it takes, and never parked."""


class SinkRefused(StreamError):
    """The receiver behind a sink does not take a change as it is, and would not later: it is too large, or malformed."""


class BulkError(StatorError):
    """What a load, an export or a copy cannot do."""


class RowRefused(BulkError):
    """The message is the reason in its dead letter."""


class JournalDiffers(BulkError):
    """``path`` is the journal; ``what`` differs."""

    def __init__(self, path: str, what: str, *, hint: str) -> None:
        super().__init__(f"the journal {path} is of another job: {what}", hint=hint)
        self.path = path
        self.what = what


class TooManyErrors(BulkError):
    """``failed`` rows are in the dead letters."""

    def __init__(self, failed: int, allowed: int, first_reason: str) -> None:
        super().__init__(
            f"{failed} rows failed, and {allowed} were allowed to; the first: {first_reason}"
        )
        self.failed = failed
        self.allowed = allowed


class DataDiffers(BulkError):
    """The message says what was expected and what was found."""
