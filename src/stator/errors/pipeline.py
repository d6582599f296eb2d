"""Errors of stream workers, sinks and bulk jobs."""

from __future__ import annotations

from stator.errors.base import StatorError


class StreamError(StatorError):
    """A stream worker or its handler cannot continue."""


class StreamMissing(StreamError):
    """The table has no stream, or the stream's view type leaves out what a handler needs."""


class ImageNotShown(StreamError):
    """A handler read an item image that the stream's view type leaves out."""

    def __init__(self, view: str) -> None:
        super().__init__(
            "the stream's view type leaves out an image of the item that the app reads",
            hint=f"set the stream's view type to {view}, or to one with more images",
        )
        self.view = view


class IdentityUnknown(StreamError):
    """A change shows only the item's key, from which its identity cannot be derived."""


class NotAnEntity(StreamError):
    """A handler asked for the entity of an item that belongs to no entity of the design."""


class TryLater(StreamError):
    """Raised by a handler when a dependency is unavailable. The change itself is fine.

    Workers retry the change until it succeeds, because this error does not count as a failed
    attempt. After too many failed attempts an item is parked: it waits for an operator.
    """


class SinkRefused(StreamError):
    """The sink's receiver rejects the change and always will.

    For example, the change is too large or malformed.
    """


class RegistryUnavailable(StreamError):
    """The schema registry of a topic does not answer, so its records cannot be decoded."""


class BulkError(StatorError):
    """A load, an export or a copy cannot continue."""


class RowRefused(BulkError):
    """A row cannot become an item. Its dead letter carries the message as the reason."""


class JournalDamaged(BulkError):
    """The journal of a job cannot be read, so the job must start again from the beginning."""


class JournalDiffers(BulkError):
    """The journal belongs to another job, or its input has changed. ``what`` says what differs."""

    def __init__(self, path: str, what: str, *, hint: str) -> None:
        super().__init__(f"the journal {path} belongs to another job: {what}", hint=hint)
        self.path = path
        self.what = what


class TooManyErrors(BulkError):
    """More rows failed than the job allows. All failed rows are in the dead letters."""

    hint = "fix the rows in the dead letters and run the job again, or allow more errors"

    def __init__(self, failed: int, allowed: int, first_reason: str) -> None:
        super().__init__(
            f"{failed} rows failed and {allowed} were allowed; the first reason: {first_reason}"
        )
        self.failed = failed
        self.allowed = allowed


class DataDiffers(BulkError):
    """A file, a count or a checksum of a job is not as expected. The message says which."""


class DataDamaged(StatorError):
    """A file or object is truncated, damaged, or not in the format it should be in."""
