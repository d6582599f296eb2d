"""Dead letters: the rows that are not in the table, one JSON object a line, with where they came from and why.

Letters of a block are written when everything before it is through, so that the file up to a length and the journal's position always agree. Who
takes a job up again cuts the file to the journal's length first: a letter stands in it once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import orjson

from stator.errors import BulkError
from stator.pipeline.bulk.job.pending_rows import DeadLetter


class DeadLetterFile:
    """``path`` None keeps none."""

    def __init__(self, path: Path | None, keep_bytes: int = 0) -> None:
        self.path = path
        self.length = keep_bytes
        self._file: BinaryIO | None = None
        if path is None:
            return
        try:
            if keep_bytes:
                os.truncate(path, keep_bytes)
                self._file = path.open("ab")
            else:
                self._file = path.open("wb")
        except OSError as error:
            raise BulkError(
                f"{path} cannot be written: {error.strerror or error}",
                hint="choose another file with --dead-letters",
            ) from None

    def add(self, letters: list[DeadLetter]) -> None:
        if self._file is not None and letters:
            text = b"".join(
                orjson.dumps(letter.to_data(), None, orjson.OPT_APPEND_NEWLINE)
                for letter in letters
            )
            self._file.write(text)
            self.length += len(text)

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self.flush()
            self._file.close()
            self._file = None
