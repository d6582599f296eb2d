"""Damage is the same for a seed, can be undone, and is never read as if it were data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stator.engine import Engine
from stator.errors import ConfigurationError, StorageError, StorageLocked
from stator.testing import damage, repair

TABLE = {
    "TableName": "sums",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    with Engine.open(str(path)) as engine:
        engine.call("CreateTable", TABLE)
        for number in range(50):
            item = {"pk": {"S": str(number)}, "text": {"S": str(number) * 50}}
            engine.call("PutItem", {"TableName": "sums", "Item": item})
    return path


def items(folder: Path) -> list[Any]:
    with Engine.open(str(folder)) as engine:
        found: list[Any] = engine.call("Scan", {"TableName": "sums"})["Items"]
        return found


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_seed_flips_the_same_bytes_and_repair_undoes_it(folder: Path) -> None:
    before = contents(folder)
    first = damage(folder, seed=3, flips=5)
    assert contents(folder) != before
    repair(first)
    assert contents(folder) == before
    assert damage(folder, seed=3, flips=5) == first
    repair(first)
    other = damage(folder, seed=4, flips=5)
    assert other != first
    repair(other)


def test_what_is_read_after_damage_is_what_was_written_or_an_error(
    folder: Path, tmp_path: Path
) -> None:
    """An engine that opens a folder may rewrite it, so each seed gets a copy."""
    expected = items(folder)
    sound = contents(folder)
    refused = 0
    for seed in range(40):
        copy = tmp_path / f"copy-{seed}"
        copy.mkdir()
        for name, content in sound.items():
            (copy / name).write_bytes(content)
        damage(copy, seed)
        try:
            assert items(copy) == expected, seed
        except StorageError:
            refused += 1
    assert refused > 0


def test_an_open_folder_and_an_empty_one_are_refused(folder: Path, tmp_path: Path) -> None:
    with Engine.open(str(folder)), pytest.raises(StorageLocked):
        damage(folder, seed=1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigurationError, match="has no data in files named"):
        damage(tmp_path / "empty", seed=1)
