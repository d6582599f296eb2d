"""What every storage does, and what only the one on disk has to."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.errors import (
    ConfigurationError,
    StorageClosed,
    StorageCorrupt,
    StorageError,
    StorageFormatUnsupported,
    StorageFull,
    StorageLocked,
)
from stator.storage import MemoryStorage, Storage
from stator.storage.protocol import after_prefix
from stator.storage.rocks import RocksStorage


@pytest.fixture(params=["memory", "disk", "disk without fsync", "disk with prefixes"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    opened: Storage
    if request.param == "memory":
        opened = MemoryStorage()
    else:
        opened = RocksStorage(
            str(tmp_path / "data"),
            durability="process" if request.param == "disk without fsync" else "disk",
            prefix_bytes=1 if request.param == "disk with prefixes" else 0,
        )
    yield opened
    opened.close()


def test_a_write_can_be_read_at_once(storage: Storage) -> None:
    storage.write({b"a": b"1", b"b": b"2"})
    assert storage.get(b"a") == b"1"
    assert storage.get(b"c") is None
    assert storage.get_many([b"b", b"c", b"a"]) == [b"2", None, b"1"]


def test_none_deletes_and_deleting_nothing_is_fine(storage: Storage) -> None:
    storage.write({b"a": b"1", b"b": b"2"})
    storage.write({b"a": None, b"z": None})
    assert list(storage.scan(b"", b"\xff")) == [(b"b", b"2")]


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_takes_low_and_leaves_high(storage: Storage, reverse: bool) -> None:
    storage.write({bytes([n]): str(n).encode() for n in range(10)})
    expected = [(bytes([n]), str(n).encode()) for n in range(3, 7)]
    expected = expected[::-1] if reverse else expected
    assert list(storage.scan(b"\x03", b"\x07", reverse=reverse)) == expected
    assert list(storage.values(b"\x03", b"\x07", reverse=reverse)) == [
        value for _, value in expected
    ]
    assert list(storage.scan(b"\x03", b"\x06\x01", reverse=reverse)) == expected
    assert list(storage.scan(b"\x07", b"\x03", reverse=reverse)) == []


def test_delete_range(storage: Storage) -> None:
    storage.write({bytes([n]): b"" for n in range(10)})
    storage.delete_range(b"\x02", b"\x08")
    assert [key for key, _ in storage.scan(b"", b"\xff")] == [b"\x00", b"\x01", b"\x08", b"\x09"]


def test_commits_rise_and_become_durable(storage: Storage) -> None:
    first, second = storage.write({b"a": b"1"}), storage.write({b"a": b"2"})
    assert second == first + 1
    storage.wait_durable(second)
    told: list[BaseException | None] = []
    storage.when_durable(first, told.append)
    assert told == [None]


def test_many_waiting_threads_share_the_fsync(storage: Storage) -> None:
    told: list[int] = []

    def work(number: int) -> None:
        storage.wait_durable(storage.write({str(number).encode(): b"x"}))
        told.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == list(range(40))


def test_a_closed_storage_refuses_writes(storage: Storage) -> None:
    storage.close()
    with pytest.raises(StorageClosed):
        storage.write({b"a": b"1"})


@given(st.binary(min_size=1, max_size=4), st.binary(max_size=4))
def test_after_prefix_is_past_every_key_with_the_prefix(prefix: bytes, rest: bytes) -> None:
    if prefix.strip(b"\xff"):
        assert prefix + rest < after_prefix(prefix)


@pytest.mark.parametrize("reverse", [False, True])
def test_ranges_in_and_across_prefixes_are_the_same_in_many_files(
    tmp_path: Path, reverse: bool
) -> None:
    """Files and filters decide where to look; what is found is what a plain dictionary has."""
    chance = random.Random(5)
    storage, twin = (
        RocksStorage(str(tmp_path / "data"), durability="process", prefix_bytes=4),
        MemoryStorage(),
    )
    try:
        for _ in range(6):
            changes: dict[bytes, bytes | None] = {}
            for _ in range(400):
                key = bytes(chance.choices(b"ab\x00\xff", k=chance.randint(0, 8)))
                changes[key] = None if chance.random() < 0.1 else chance.randbytes(3)
            storage.write(changes)
            twin.write(changes)
            storage._db.flush()  # a file of its own
        for _ in range(1500):
            low, high = (
                bytes(chance.choices(b"ab\x00\xff", k=chance.randint(0, 7))) for _ in range(2)
            )
            if chance.random() < 0.5:
                high = low[:4] + high  # within a prefix, as a rule
            assert list(storage.scan(low, high, reverse=reverse)) == list(
                twin.scan(low, high, reverse=reverse)
            )
            assert list(storage.values(low, high, reverse=reverse)) == list(
                twin.values(low, high, reverse=reverse)
            )
    finally:
        storage.close()


def test_a_store_made_without_prefixes_is_read_with_them(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    first = RocksStorage(path)
    first.write({bytes([a, b]): b"x" for a in range(20) for b in range(20)})
    first._db.flush()
    first.close()
    again = RocksStorage(path, prefix_bytes=1)
    again.write({b"\x05\xf0": b"y"})
    assert len(list(again.scan(b"\x05\x00", b"\x05\xff"))) == 21
    assert len(list(again.scan(b"", b"\xff"))) == 401
    again.close()


# --- on disk ----------------------------------------------------------------------------------------------


def test_data_is_there_after_reopening(tmp_path: Path) -> None:
    path = str(tmp_path / "deep" / "data")
    first = RocksStorage(path)
    first.write({b"a": b"1"})
    first.close()
    second = RocksStorage(path)
    assert second.get(b"a") == b"1"
    second.close()


def test_a_second_process_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    code = (
        "import sys; from stator.storage.rocks import RocksStorage; RocksStorage(sys.argv[1]);"
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(StorageLocked, match=str(holder.pid)) as caught:
            RocksStorage(path)
        holder.kill()
    assert caught.value.path == path
    assert caught.value.hint
    RocksStorage(path).close()


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "data"
    RocksStorage(str(path)).close()
    (path / "FORMAT").write_text("99\n")
    before = sorted(file.name for file in path.iterdir())
    with pytest.raises(StorageFormatUnsupported, match="99") as caught:
        RocksStorage(str(path))
    assert (caught.value.found, caught.value.supported) == (99, 1)
    assert sorted(file.name for file in path.iterdir()) == before


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"not ours")
    with pytest.raises(StorageCorrupt, match="none that Stator wrote"):
        RocksStorage(str(tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["holiday.jpg"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"")
    with pytest.raises(StorageCorrupt, match="a file, not a folder"):
        RocksStorage(str(tmp_path / "data"))


def test_damage_in_the_manifest_is_said_clearly(tmp_path: Path) -> None:
    path = tmp_path / "data"
    storage = RocksStorage(str(path))
    storage.wait_durable(storage.write({b"a": b"1"}))
    storage.close()
    [manifest] = path.glob("MANIFEST-*")
    content = bytearray(manifest.read_bytes())
    content[len(content) // 2] ^= 0xFF
    manifest.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        RocksStorage(str(path))
    assert caught.value.hint


def test_a_torn_tail_of_the_log_loses_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "data"
    code = (
        "import os, sys; from stator.storage.rocks import RocksStorage; s = RocksStorage(sys.argv[1]);"
        "s.wait_durable(s.write({b'first': b'1' * 100})); s.wait_durable(s.write({b'second': b'2' * 100}));"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    log = max(path.glob("*.log"))
    content = log.read_bytes().rstrip(b"\0")
    log.write_bytes(content[:-10])
    storage = RocksStorage(str(path))
    assert storage.get(b"first") == b"1" * 100
    assert storage.get(b"second") is None
    storage.close()


def test_a_checkpoint_is_a_store_of_its_own(tmp_path: Path) -> None:
    storage = RocksStorage(str(tmp_path / "data"))
    storage.write({b"a": b"1"})
    storage.checkpoint(str(tmp_path / "copy"))
    storage.write({b"a": b"2"})
    copy = RocksStorage(str(tmp_path / "copy"))
    assert (copy.get(b"a"), storage.get(b"a")) == (b"1", b"2")
    copy.close()
    storage.close()


def test_memory_has_nothing_to_checkpoint() -> None:
    with pytest.raises(ConfigurationError):
        MemoryStorage().checkpoint("anywhere")


class FullDisk:
    """A database whose disk has no room left: what it raises is what RocksDB raises."""

    def __init__(self, real: Any, fail_on: str) -> None:
        self._real = real
        self._fail_on = fail_on

    def __getattr__(self, name: str) -> Any:
        if name == self._fail_on:

            def fail(*_: Any) -> None:
                raise Exception(
                    "IO error: No space left on device: While appending to file: 000004.log"
                )

            return fail
        return getattr(self._real, name)


class TimedDisk:
    """A database whose log takes as long to sync as the test says, and remembers which threads did it."""

    def __init__(self, real: Any, seconds: float) -> None:
        self._real = real
        self.seconds = seconds
        self.threads: list[threading.Thread] = []

    def flush_wal(self, sync: bool) -> None:
        self.threads.append(threading.current_thread())
        time.sleep(self.seconds)
        self._real.flush_wal(sync)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def test_a_slow_disk_never_holds_up_whoever_asks(tmp_path: Path) -> None:
    storage = RocksStorage(str(tmp_path / "data"))
    disk = TimedDisk(storage._db, 0.005)
    storage._db = disk
    for number in range(40):
        storage.wait_durable(storage.write({b"key": b"%d" % number}))
    assert threading.current_thread() not in disk.threads[-20:]
    disk.seconds = 0.0
    storage.close()


def test_many_threads_share_syncs_whatever_the_disk(tmp_path: Path) -> None:
    storage = RocksStorage(str(tmp_path / "data"))
    disk = TimedDisk(storage._db, 0.0)
    storage._db = disk
    lock = threading.Lock()

    def work(name: int) -> None:
        for number in range(50):
            with lock:  # commits are made one at a time, as under the engine's lock
                commit = storage.write({b"%d-%d" % (name, number): b"x"})
            storage.wait_durable(commit)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    storage.close()
    again = RocksStorage(str(tmp_path / "data"))
    assert all(
        again.get(b"%d-%d" % (name, number)) == b"x" for name in range(8) for number in range(50)
    )
    again.close()


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("fail_on", ["write", "flush_wal"])
def test_a_full_disk_acknowledges_nothing_and_loses_nothing(
    tmp_path: Path, fail_on: str, quick: bool
) -> None:
    path = str(tmp_path / "data")
    storage = RocksStorage(path)
    storage.wait_durable(storage.write({b"safe": b"1"}))
    storage._sync_seconds = 0.0 if quick else 1.0
    real = storage._db
    storage._db = FullDisk(real, fail_on)
    with pytest.raises(StorageFull, match="No space left") as caught:
        storage.wait_durable(storage.write({b"lost": b"2"}))
    assert caught.value.hint
    with pytest.raises(StorageFull):  # and so on until it is reopened
        storage.write({b"more": b"3"})
    storage.close()
    again = RocksStorage(path)
    assert again.get(b"safe") == b"1"
    again.close()
