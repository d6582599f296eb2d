"""The one schema of all Parquet files of an export, and the files that are written with it.

The types of the columns are planned from the facts about all items. If a value does not fit the
type that a design gives its field, the column gets a type that fits all its values, and the files
are written again: no value is ever rounded to fit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stator.formats.parquet import Types, check_parquet, write_parquet
from stator.formats.parquet_columns import ColumnFacts, Unfit, inferred_types
from stator.model.values import Item
from stator.pipeline.bulk.export.field_columns import FieldColumns
from stator.pipeline.bulk.export.parts import file_md5
from stator.pipeline.bulk.job.journal import sync_folder, unwritable

Group = Callable[[], list[Item]]
"""Reads the items of one row group."""


class ParquetSchema:
    """The columns of Parquet files, and the writer of these files.

    ``facts`` says what the values of each column have in common, over all items of the files.
    ``first`` names the first columns. ``fields`` has the columns of an entity; if it is None, the
    values alone decide the types.
    """

    def __init__(
        self,
        facts: Mapping[str, ColumnFacts],
        first: tuple[str, ...],
        fields: FieldColumns | None,
    ) -> None:
        self._facts = facts
        self._first = first
        self._fields = fields
        self._loose: set[str] = set()

    @property
    def types(self) -> Types:
        if self._fields is None:
            return inferred_types(self._facts, self._first)
        return self._fields.types(self._facts, self._loose)

    def write(
        self, path: Path, groups: Sequence[Group], compression: str | None, *, verify: bool
    ) -> tuple[int, str]:
        """Write one file, in which each group is a row group. Return its size in bytes and MD5."""
        [found] = self.write_all({path: groups}, compression, verify=verify)
        return found

    def write_all(
        self, files: Mapping[Path, Sequence[Group]], compression: str | None, *, verify: bool
    ) -> list[tuple[int, str]]:
        """Write files with the same columns. Return the size in bytes and the MD5 of each.

        With ``verify``, each file is read back before it gets its final name. If a value does not
        fit the type of its column, the column gets another type and all files are written again.
        """
        while True:
            try:
                return [
                    self._written(path, groups, compression, verify=verify)
                    for path, groups in files.items()
                ]
            except Unfit as unfit:
                if self._fields is None or unfit.column in self._loose:
                    raise AssertionError(f"{unfit.column} has no type for its values") from unfit
                self._loose.add(unfit.column)

    def _written(
        self, path: Path, groups: Sequence[Group], compression: str | None, *, verify: bool
    ) -> tuple[int, str]:
        beside = path.with_name(f".{path.name}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_parquet(beside, (group() for group in groups), self.types, compression)
            with beside.open("rb") as file:
                os.fsync(file.fileno())
            if verify:
                check_parquet(beside, (group() for group in groups), self.types)
            md5, size = file_md5(beside)
            beside.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise unwritable(path, error) from None
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        return size, md5
