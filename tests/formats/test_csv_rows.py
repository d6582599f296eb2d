"""CSV is read whole: every line is in a row or is a bad line, wherever blocks begin."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.errors import DataDamaged
from stator.formats import csv_rows
from stator.formats.csv_rows import CsvReader, write_rows


def rows_of(text: str | bytes) -> list[list[str]]:
    """The rows, without blank and bad lines."""
    content = text if isinstance(text, bytes) else text.encode()
    reader = CsvReader(io.BytesIO(content), errors="surrogateescape")
    return [row for block in reader.blocks() for row in block.rows if row]


def bad_of(text: str) -> list[tuple[int, str, str]]:
    return [
        (bad.line, bad.text.strip(), bad.reason)
        for block in CsvReader(io.BytesIO(text.encode())).blocks()
        for bad in block.bad.values()
    ]


@settings(max_examples=200)
@given(
    rows=st.lists(st.lists(st.text('ab,"\n\r é', max_size=6), min_size=2, max_size=4), max_size=30),
    read_bytes=st.integers(1, 50),
    block_rows=st.integers(1, 10),
)
def test_valid_rows_are_those_of_pythons_reader(
    rows: list[list[str]], read_bytes: int, block_rows: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_rows, "_READ_BYTES", read_bytes)
        patch.setattr(csv_rows, "BLOCK_ROWS", block_rows)
        content = write_rows(["x", "y"], rows)
        found = rows_of(content)
    assert found == list(csv.reader(io.StringIO(content.decode(), newline="")))
    assert found[1:] == rows


@settings(max_examples=300)
@given(
    lines=st.lists(st.text('a,""', min_size=1, max_size=8), max_size=25),
    read_bytes=st.integers(1, 60),
    row_bytes=st.integers(20, 100),
)
def test_every_line_is_in_a_row_or_is_bad_and_positions_hold(
    lines: list[str], read_bytes: int, row_bytes: int
) -> None:
    """Reading from the end of any block on gives the same rows as reading from the start."""
    content = "".join(line + "\n" for line in lines).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_rows, "_READ_BYTES", read_bytes)
        patch.setattr(csv_rows, "BLOCK_ROWS", 3)
        patch.setattr(csv_rows, "ROW_BYTES", row_bytes)
        blocks = list(CsvReader(io.BytesIO(content)).blocks())
        rows = [row for block in blocks for row in block.rows]
        seen = sum(1 + sum(cell.count("\n") for cell in row) for row in rows)
        assert seen == len(lines)
        before = 0
        for block in blocks:
            before += len(block.rows)
            rest = CsvReader(
                io.BytesIO(content[block.end_byte :]),
                first_byte=block.end_byte,
                first_line=block.end_line,
            )
            later = list(rest.blocks())
            assert [row for each in later for row in each.rows] == rows[before:]
            bad = [bad.line for each in blocks for bad in each.bad.values()]
            assert [bad.line for each in later for bad in each.bad.values()] == [
                line for line in bad if line > block.end_line
            ]


def test_an_open_quote_costs_its_own_line_only() -> None:
    text = 'pk,v\na,1\nb,"open\nc,3\nd,4\n'
    assert rows_of(text) == [["pk", "v"], ["a", "1"], ["c", "3"], ["d", "4"]]
    assert bad_of(text) == [
        (3, 'b,"open', "a quote of the row that begins in line 3 does not close")
    ]


def test_an_open_quote_that_a_later_quote_closes_costs_its_own_line_only() -> None:
    text = 'pk,v\nb,"open\nc,"3"\nd,"4"\n'
    assert rows_of(text) == [["pk", "v"], ["c", "3"], ["d", "4"]]
    assert bad_of(text) == [
        (2, 'b,"open', "text follows a closing quote in the row of lines 2 to 3")
    ]


def test_an_open_quote_is_found_in_a_file_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "ROW_BYTES", 10_000)
    monkeypatch.setattr(csv_rows, "_READ_BYTES", 1_000)
    text = 'pk,v\n0,"open\n' + "".join(f"{number},x\n" for number in range(1, 9_000))
    assert len(rows_of(text)) == 9_000
    assert len(bad_of(text)) == 1


def test_a_file_of_open_quotes_is_given_up() -> None:
    """Each line closes the quote of the line before and opens another."""
    with pytest.raises(DataDamaged, match="101 lines have a quote that does not close, the last"):
        rows_of('a",",\n' * 300)


def test_line_ends_byte_order_marks_and_nul_bytes() -> None:
    for end in ("\n", "\r\n", "\r"):
        assert rows_of(f"\ufeffpk,v{end}a,b{end}{end}c,d") == [["pk", "v"], ["a", "b"], ["c", "d"]]
    assert rows_of("pk\na\0b\n") == [["pk"], ["a\0b"]]
    assert rows_of(b"pk\ncaf\xe9\n") == [["pk"], ["caf\udce9"]]
    with pytest.raises(DataDamaged, match="UTF-16"):
        rows_of("pk,v\n".encode("utf-16"))


def test_a_row_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "ROW_BYTES", 1_000)
    monkeypatch.setattr(csv_rows, "_READ_BYTES", 100)
    whole = 'pk\n"' + "x\n" * 400 + '"\nb\n'
    assert len(rows_of(whole)) == 3
    longer = 'pk\n"' + "x\n" * 600 + '"\nb\n'
    assert bad_of(longer)[0][0] == 2


@pytest.mark.parametrize("line", ["x" * 5_000, "x," * 2_500, '"' + "x" * 5_000])
def test_a_line_is_not_read_beyond_its_limit(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setattr(csv_rows, "LINE_BYTES", 2_000)
    monkeypatch.setattr(csv_rows, "_READ_BYTES", 100)
    stream = io.BytesIO(f"pk,v\na,b\n{line}\n".encode())
    with pytest.raises(DataDamaged, match="a line after line 2 is longer than 2,000 bytes"):
        list(CsvReader(stream).blocks())
    assert stream.tell() < 3_000
