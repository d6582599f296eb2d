"""Dead letters: the rows that could not be written, one JSON object per line.

    {"source": "orders.csv", "row": 17, "content": {...}, "reason": "total: 'x' is not a number"}

The letters of a block are written when every block before it is done, so the file's length always
agrees with the journal's position. A resumed job first cuts the file to the length in the journal,
so the file has each letter once. Stator never reads the lines back, so they carry no version.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import orjson

from stator.errors import BulkError
from stator.pipeline.bulk.job.journal import unwritable
from stator.pipeline.bulk.job.pending_rows import DeadLetter


class DeadLetterFile:
    """The file of dead letters of one job.

    If ``path`` is None, the letters are discarded.
    """

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
                hint="name another file with --dead-letters",
            ) from None

    def add(self, letters: list[DeadLetter]) -> None:
        if self._file is not None and letters:
            text = b"".join(
                orjson.dumps(letter.to_data(), None, orjson.OPT_APPEND_NEWLINE)
                for letter in letters
            )
            with self._writing():
                self._file.write(text)
            self.length += len(text)

    def flush(self) -> None:
        if self._file is not None:
            with self._writing():
                self._file.flush()
                os.fsync(self._file.fileno())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        assert self.path is not None
        try:
            yield
        except OSError as error:
            raise unwritable(self.path, error) from None

    def close(self) -> None:
        """Flush and close the file. It is closed even if flushing fails."""
        file, self._file = self._file, None
        if file is not None:
            with self._writing(), file:
                file.flush()
                os.fsync(file.fileno())
