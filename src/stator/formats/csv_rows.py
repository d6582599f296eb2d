"""CSV: reads rows of text from a byte stream, and writes rows of text.

The header is treated as an ordinary row; callers interpret it. ``plain.cell_text`` turns attribute
values into text. A byte order mark is dropped, and line ends inside quotes belong to the value.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Final

FIELD_BYTES: Final = 16 << 20
"""The longest value that is read. Python's limit is 128 KiB unless it is raised."""
DAMAGE: Final = (csv.Error, UnicodeDecodeError)
"""What reading raises for data that is no CSV or no UTF-8."""


def read_rows(
    stream: BinaryIO, delimiter: str = ",", *, errors: str = "strict"
) -> Iterator[list[str]]:
    """Return the rows of a CSV file, including the header.

    ``errors`` says how to treat bytes that are not UTF-8, with the values that ``bytes.decode``
    takes. The result is the C reader itself, so that a row costs no Python call.
    """
    # The limit belongs to the process. It is only ever raised, because another thread may read too.
    if csv.field_size_limit() < FIELD_BYTES:
        csv.field_size_limit(FIELD_BYTES)
    text = io.TextIOWrapper(stream, "utf-8-sig", errors=errors, newline="")
    return csv.reader(text, delimiter=delimiter)


def write_rows(header: Sequence[str], rows: Iterable[Iterable[str]]) -> bytes:
    """Return CSV with a header line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()
