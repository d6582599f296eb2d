"""Every storage behaves the same; the storage on disk also survives crashes and damage."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.errors import (
    ConfigurationError,
    StorageClosed,
    StorageCorrupt,
    StorageDenied,
    StorageError,
    StorageFailed,
    StorageFormatUnsupported,
    StorageFull,
    StorageLocked,
    TooManyOpenFiles,
)
from stator.storage import MemoryStorage, Storage
from stator.storage.failures import is_locked, storage_failure
from stator.storage.folder import FORMAT_VERSION
from stator.storage.protocol import after_prefix
from stator.storage.rocks import RocksStorage


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder on the disk. Those of other tests may be in memory (``tests/conftest.py``)."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


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
    """Files and filters decide where RocksDB looks; the result equals a plain dictionary's."""
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


# --- on disk --------------------------------------------------------------------------------------


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
    with pytest.raises(StorageFormatUnsupported, match="has format 99; this version") as caught:
        RocksStorage(str(path))
    assert (caught.value.found, caught.value.supported) == (99, FORMAT_VERSION)
    assert "upgrade Stator" in str(caught.value.hint)
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


def test_damage_in_the_manifest_is_reported(tmp_path: Path) -> None:
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
        "import os, sys; from stator.storage.rocks import RocksStorage;"
        "s = RocksStorage(sys.argv[1]);"
        "s.wait_durable(s.write({b'first': b'1' * 100}));"
        "s.write({b'second': b'2' * 100});"  # not acknowledged
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


def test_a_store_opened_to_read_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data"
    storage = RocksStorage(str(path))
    storage.write({b"a": b"1"})
    with pytest.raises(StorageLocked):
        RocksStorage(str(path), read_only=True)
    storage.close()
    before = {file.name: file.read_bytes() for file in path.iterdir() if "LOG" not in file.name}
    reader = RocksStorage(str(path), read_only=True)
    assert list(reader.scan(b"", b"\xff")) == [(b"a", b"1")]
    with pytest.raises(StorageError):
        reader.write({b"b": b"2"})
    reader.close()
    after = {file.name: file.read_bytes() for file in path.iterdir() if "LOG" not in file.name}
    assert before == after


@pytest.mark.parametrize("content", [b"\xb1\n", b"9" * 100_000, b"0", b"", b"one"])
def test_a_damaged_format_file_is_damage(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data"
    RocksStorage(str(path)).close()
    (path / "FORMAT").write_bytes(content)
    with pytest.raises((StorageCorrupt, StorageFormatUnsupported)):
        RocksStorage(str(path))


def test_a_checkpoint_is_a_store_of_its_own(tmp_path: Path) -> None:
    storage = RocksStorage(str(tmp_path / "data"))
    storage.write({b"a": b"1"})
    storage.checkpoint(str(tmp_path / "copy"))
    storage.write({b"a": b"2"})
    assert (tmp_path / "copy" / "FORMAT").read_text() == f"{FORMAT_VERSION}\n"
    copy = RocksStorage(str(tmp_path / "copy"))
    assert (copy.get(b"a"), storage.get(b"a")) == (b"1", b"2")
    copy.close()
    storage.close()


def test_a_checkpoint_does_not_overwrite_a_folder(tmp_path: Path) -> None:
    storage = RocksStorage(str(tmp_path / "data"))
    with pytest.raises(ConfigurationError, match="already exists"):
        storage.checkpoint(str(tmp_path))
    storage.close()


def test_memory_has_nothing_to_checkpoint() -> None:
    with pytest.raises(ConfigurationError):
        MemoryStorage().checkpoint("anywhere")


class FullDisk:
    """A database that raises what RocksDB raises when the disk has no space left."""

    def __init__(
        self,
        real: Any,
        fail_on: str,
        text: str = "IO error: No space left on device: While appending to file: 000004.log",
    ) -> None:
        self._real = real
        self._fail_on = fail_on
        self._text = text

    def __getattr__(self, name: str) -> Any:
        if name == self._fail_on:

            def fail(*_: Any) -> None:
                raise Exception(self._text)

            return fail
        return getattr(self._real, name)


class TimedDisk:
    """A database whose log takes ``seconds`` to sync, and that records the syncing threads."""

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
        storage.wait_durable(storage.write({b"lost": b"2"}, undoable=True))
    assert caught.value.hint
    for _ in range(3):  # each time with an error of its own
        with pytest.raises(StorageFull) as again_caught:
            storage.wait_durable(storage.write({b"more": b"3"}, undoable=True))
        assert again_caught.value is not caught.value
        assert len(again_caught.traceback) <= len(caught.traceback)
    storage._db = real  # room again
    storage.wait_durable(storage.write({b"later": b"4"}))
    storage.close()
    again = RocksStorage(path)
    assert [again.get(key) for key in (b"safe", b"later")] == [b"1", b"4"]
    again.close()


def test_a_full_disk_ends_writes_that_cannot_be_undone(tmp_path: Path) -> None:
    storage = RocksStorage(str(tmp_path / "data"))
    real = storage._db
    storage._db = FullDisk(real, "write")
    with pytest.raises(StorageFull, match="No space left"):
        storage.write({b"a": b"1"})
    storage._db = real
    with pytest.raises(StorageFull) as caught:
        storage.write({b"b": b"2"}, undoable=True)
    assert caught.value.hint is not None and "open the folder again" in caught.value.hint
    storage.close()


def test_a_failure_other_than_a_full_disk_ends_all_writes(tmp_path: Path) -> None:
    storage = RocksStorage(str(tmp_path / "data"))
    real = storage._db
    storage._db = FullDisk(real, "flush_wal", "IO error: Input/output error: While fsync: 04.log")
    with pytest.raises(StorageFailed):
        storage.wait_durable(storage.write({b"a": b"1"}))
    storage._db = real  # what the log contains is not known, whatever the disk says now
    depths = []
    for _ in range(3):
        with pytest.raises(StorageFailed) as later:
            storage.write({b"b": b"2"})
        depths.append(len(later.traceback))
    assert len(set(depths)) == 1, "each write has an error of its own"
    storage.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MB. Mounting one takes root."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here: it takes root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_many_writers_go_on_when_a_full_disk_has_room_again(small_disk: Path) -> None:
    """Writers and syncs meet the same failure; only the first learns that the disk is full."""
    storage = RocksStorage(str(small_disk / "data"))
    lock, full = threading.Lock(), threading.Event()
    acknowledged: set[bytes] = set()

    def work(name: int) -> None:
        for number in itertools.count():
            key = b"%d-%d" % (name, number)
            try:
                with lock:
                    commit = storage.write({key: random.randbytes(10_000)}, undoable=True)
                storage.wait_durable(commit)
            except StorageError:
                full.set()
                return
            acknowledged.add(key)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    full.wait()
    for thread in threads:
        thread.join()
    subprocess.run(["mount", "-o", "remount,size=400m", str(small_disk)], check=True)
    while True:
        try:
            storage.wait_durable(storage.write({b"later": b"1"}, undoable=True))
            break
        except StorageFull:
            time.sleep(0.2)
    storage.close()
    again = RocksStorage(str(small_disk / "data"))
    assert all(again.get(key) for key in acknowledged)
    again.close()


def test_writes_go_on_when_a_full_disk_has_room_again(small_disk: Path) -> None:
    storage = RocksStorage(str(small_disk / "data"))
    acknowledged = 0
    with pytest.raises(StorageFull):
        while True:
            key = b"%06d" % acknowledged
            storage.wait_durable(storage.write({key: random.randbytes(10_000)}, undoable=True))
            acknowledged += 1
    subprocess.run(["mount", "-o", "remount,size=400m", str(small_disk)], check=True)
    while True:  # RocksDB looks for room every few seconds
        try:
            storage.wait_durable(storage.write({b"later": b"1"}, undoable=True))
            break
        except StorageFull:
            time.sleep(0.2)
    storage.close()
    again = RocksStorage(str(small_disk / "data"))
    assert all(again.get(b"%06d" % number) for number in range(acknowledged))
    assert again.get(b"later") == b"1"
    again.close()


# --- failures of the disk and the system ----------------------------------------------------------


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A closed store of 2,000 entries in one file of a few hundred blocks."""
    path = tmp_path / "filled"
    storage = RocksStorage(str(path))
    storage.write({b"%06d" % number: random.randbytes(1000) for number in range(2000)})
    storage._db.flush()
    storage.close()
    return path


def _damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    for at in range(len(content) // 2, len(content) // 2 + 40_000):
        content[at] ^= 0x5A
    file.write_bytes(content)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_over_a_damaged_block_raises_instead_of_ending_early(
    filled: Path, reverse: bool
) -> None:
    [file] = filled.glob("*.sst")
    _damage(file)
    storage = RocksStorage(str(filled))
    for read in (storage.scan, storage.values):
        with pytest.raises(StorageCorrupt, match="block checksum mismatch"):
            list(read(b"", b"\xff", reverse=reverse))
    with pytest.raises(StorageCorrupt, match="block checksum mismatch"):
        [storage.get(b"%06d" % number) for number in range(2000)]
    with pytest.raises(StorageCorrupt, match="block checksum mismatch"):
        storage.get_many([b"%06d" % number for number in range(2000)])
    assert len(list(storage.scan(b"000000", b"000100", reverse=reverse))) == 100
    storage.close()


@pytest.mark.parametrize("pattern", ["*.sst", "MANIFEST-*"])
def test_a_missing_file_is_damage(filled: Path, pattern: str) -> None:
    for file in filled.glob(pattern):
        file.unlink()
    with pytest.raises(StorageCorrupt, match="No such file") as caught:
        RocksStorage(str(filled))
    assert "restore" in str(caught.value.hint)


def _opened_in_a_child(path: Path, before: str) -> str:
    """Open the store in a child process that first runs ``before``; return the error it meets."""
    code = f"""
import os, pickle, resource, sys  # pickle: rocksdict needs it, and another user may not read it
from stator.storage.rocks import RocksStorage
{before}
try:
    RocksStorage(sys.argv[1])
except Exception as error:
    print(type(error).__name__)
"""
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_limit_of_open_files_is_named(filled: Path) -> None:
    one_left = "resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir('/proc/self/fd')),) * 2)"
    assert _opened_in_a_child(filled, one_left) == "TooManyOpenFiles"


def test_a_folder_of_another_user_is_denied() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    folder = Path(tempfile.mkdtemp(prefix="stator-denied-"))
    try:
        RocksStorage(str(folder / "data")).close()
        for mode in (0o755, 0o700):
            folder.chmod(mode)
            assert _opened_in_a_child(folder / "data", "os.setuid(65534)") == "StorageDenied"
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        ("IO error: No space left on device: While appending to file: 4.log", StorageFull),
        ("IO error: While appending to file: 4.log: Disk quota exceeded", StorageFull),
        ("IO error: While open a file for lock: /d/LOCK: Permission denied", StorageDenied),
        ("Permission denied (os error 13)", StorageDenied),
        ("IO error: While mkdir if missing: /d: Read-only file system", StorageDenied),
        (
            "IO error: While open a file for random read: 9.sst: Too many open files",
            TooManyOpenFiles,
        ),
        (
            "IO error: While open a file for random read: 9.sst: Too many open files in system",
            TooManyOpenFiles,
        ),
        (
            "IO error: No such file or directory: While opening a file: /d/MANIFEST-000005",
            StorageCorrupt,
        ),
        ("Corruption: block checksum mismatch: stored = 1, computed = 2", StorageCorrupt),
        ("IO error: While pread offset 0 len 48: 9.sst: Input/output error", StorageFailed),
    ],
)
def test_each_failure_of_rocksdb_has_its_own_class(
    detail: str, expected: type[StorageFailed]
) -> None:
    failure = storage_failure("/d", Exception(detail))
    assert type(failure) is expected
    assert detail in failure.message and "/d" in failure.message
    assert failure.hint is not None
    assert not is_locked(Exception(detail))


@pytest.mark.parametrize(
    "detail",
    [
        "IO error: While lock file: /d/LOCK: Resource temporarily unavailable",
        "IO error: lock hold by current process, acquire time 1: /d/LOCK: No locks available",
    ],
)
def test_a_held_lock_is_recognised(detail: str) -> None:
    assert is_locked(Exception(detail))
