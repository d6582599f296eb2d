"""A folder that lost acknowledged writes is refused; a folder that a crash left is opened.

Each case damages one file of a folder, and asks for all acknowledged writes or an error.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

from stator.errors import StorageCorrupt, StorageError, StorageLocked
from stator.storage import high_water
from stator.storage.folder import FORMAT_VERSION
from stator.storage.high_water import Mark, read_mark
from stator.storage.rocks import RocksStorage

_WRITES = 900

# Two sessions. The second stores a table, and then has 300 writes in its log alone.
_PROGRAM = """
import os, sys
from stator.storage.rocks import RocksStorage
path, durability, end = sys.argv[1:]
def write(store, low, high):
    for number in range(low, high):
        store.wait_durable(store.write({b"%06d" % number: b"x" * 1000}))
store = RocksStorage(path, durability=durability)
write(store, 0, 300)
store.close()
store = RocksStorage(path, durability=durability)
write(store, 300, 600)
if end != "killed before a table":
    store._db.flush()
write(store, 600, 900)
if end == "closed":
    store.close()
os.kill(os.getpid(), 9)
"""
_ENDS = ("closed", "killed", "killed before a table")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    made: dict[tuple[str, str], Path] = {}

    def folder(durability: str, end: str) -> Path:
        if (durability, end) not in made:
            path = tmp_path_factory.mktemp("whole") / "data"
            command = [sys.executable, "-c", _PROGRAM, str(path), durability, end]
            subprocess.run(command, check=False)
            made[durability, end] = path
        return made[durability, end]

    return folder


def _holds_everything(path: Path) -> bool:
    storage = RocksStorage(str(path))
    try:
        return len(list(storage.scan(b"0", b"9"))) == _WRITES
    finally:
        storage.close()


def _delete(file: Path, _: float) -> None:
    file.unlink()


def _empty(file: Path, _: float) -> None:
    file.write_bytes(b"")


def _cut(file: Path, share: float) -> None:
    content = file.read_bytes().rstrip(b"\0")
    file.write_bytes(content[: int(len(content) * share)])


def _zero_end(file: Path, share: float) -> None:
    content = file.read_bytes().rstrip(b"\0")
    kept = int(len(content) * share)
    file.write_bytes(content[:kept] + bytes(len(content) - kept))


def _zero_block(file: Path, share: float) -> None:
    """Zero one of the blocks of a log, which RocksDB then passes over."""
    content = bytearray(file.read_bytes())
    at = int(len(content) * share) // 32768 * 32768
    content[at : at + 32768] = bytes(len(content[at : at + 32768]))
    file.write_bytes(content)


def _swap(file: Path, _: float) -> None:
    """Exchange the mark with a log."""
    log = max(file.parent.glob("*.log"), default=None)
    if log is None:
        file.unlink()
        return
    content = file.read_bytes()
    file.write_bytes(log.read_bytes())
    log.write_bytes(content)


@pytest.mark.parametrize("harm", [_delete, _empty, _cut, _zero_end, _zero_block])
@pytest.mark.parametrize(
    "pattern", ["*.log", "MANIFEST-*", "CURRENT", "*.sst", "OPTIONS-*", "IDENTITY", "DURABLE"]
)
@pytest.mark.parametrize("end", _ENDS)
@pytest.mark.parametrize("durability", ["disk", "process"])
def test_one_damaged_file_is_an_error_or_loses_nothing(
    folders: Callable[[str, str], Path],
    tmp_path: Path,
    durability: str,
    end: str,
    pattern: str,
    harm: Callable[[Path, float], None],
) -> None:
    whole = folders(durability, end)
    files = sorted(file.name for file in whole.glob(pattern))
    shares = (0.1, 0.5, 0.95) if harm in (_cut, _zero_end, _zero_block) else (0.0,)
    for number, (name, share) in enumerate((name, share) for name in files for share in shares):
        path = tmp_path / str(number)
        shutil.copytree(whole, path)
        harm(path / name, share)
        before = {file.name: file.read_bytes() for file in path.glob("*.sst")}
        try:
            assert _holds_everything(path), (name, share)
        except StorageError:
            assert before == {file.name: file.read_bytes() for file in path.glob("*.sst")}


@pytest.mark.parametrize("mark", [_delete, _empty, _cut, _swap])
@pytest.mark.parametrize("harm", [_delete, _empty, _cut])
@pytest.mark.parametrize("end", _ENDS)
@pytest.mark.parametrize("durability", ["disk", "process"])
def test_a_lost_mark_does_not_hide_a_damaged_log(
    folders: Callable[[str, str], Path],
    tmp_path: Path,
    durability: str,
    end: str,
    harm: Callable[[Path, float], None],
    mark: Callable[[Path, float], None],
) -> None:
    path = tmp_path / "data"
    shutil.copytree(folders(durability, end), path)
    for log in path.glob("*.log"):
        harm(log, 0.9)
    mark(path / "DURABLE", 0.3)
    with pytest.raises(StorageCorrupt, match="DURABLE"):
        _holds_everything(path)


def test_a_folder_without_its_mark_opens_on_request(
    folders: Callable[[str, str], Path], tmp_path: Path
) -> None:
    path = tmp_path / "data"
    shutil.copytree(folders("disk", "killed"), path)
    (path / "DURABLE").unlink()
    (path / "FORMAT").write_text("1\n")
    assert _holds_everything(path)
    assert (path / "FORMAT").read_text() == f"{FORMAT_VERSION}\n"


@pytest.mark.parametrize("end", _ENDS)
@pytest.mark.parametrize("durability", ["disk", "process"])
def test_a_manifest_cut_anywhere_is_an_error_or_loses_nothing(
    folders: Callable[[str, str], Path], tmp_path: Path, durability: str, end: str
) -> None:
    whole = folders(durability, end)
    [manifest] = whole.glob("MANIFEST-*")
    outcomes = set()
    for kept in range(0, manifest.stat().st_size, 37):
        path = tmp_path / str(kept)
        shutil.copytree(whole, path)
        os.truncate(path / manifest.name, kept)
        try:
            assert _holds_everything(path), kept
            outcomes.add("whole")
        except StorageCorrupt:
            outcomes.add("refused")
    assert "refused" in outcomes


@pytest.mark.parametrize("durability", ["disk", "process"])
def test_one_of_several_logs_cannot_go_missing(tmp_path: Path, durability: str) -> None:
    """A store under load has logs of memtables that wait to be stored as tables."""
    program = """
import os, sys
from stator.storage.rocks import RocksStorage
store = RocksStorage(sys.argv[1], durability=sys.argv[2])
for number in range(900):
    commit = store.write({b"%06d" % number: os.urandom(100_000)})
    if len([name for name in os.listdir(sys.argv[1]) if name.endswith(".log")]) > 2:
        break
store.wait_durable(commit)
print(number + 1, flush=True)
os.kill(os.getpid(), 9)
"""
    whole = tmp_path / "data"
    command = [sys.executable, "-c", program, str(whole), durability]
    written = int(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    for log in whole.glob("*.log"):
        for harm in (_delete, _empty, _cut, _zero_end):
            path = tmp_path / f"{log.name}-{harm.__name__}"
            shutil.copytree(whole, path)
            harm(path / log.name, 0.5)
            try:
                storage = RocksStorage(str(path))
            except StorageCorrupt:
                shutil.rmtree(path)
                continue
            assert len(list(storage.scan(b"0", b"9"))) == written, (log.name, harm)
            storage.close()


def test_a_log_that_the_manifest_overtook_cannot_go_missing(tmp_path: Path) -> None:
    """When a table is stored, the manifest gets the number of the last write of all.

    That write may be in the log alone. Numbers then do not show that the log is gone.
    """
    program = """
import os, sys, time
from stator.storage.rocks import RocksStorage
store = RocksStorage(sys.argv[1], durability=sys.argv[2])
number = 0
while True:
    store.wait_durable(store.write({b"%06d" % number: os.urandom(100_000)}))
    number += 1
    logs = sorted(name for name in os.listdir(sys.argv[1]) if name.endswith(".log"))
    if len(logs) == 2:  # a memtable is being stored as a table
        break
while os.path.exists(os.path.join(sys.argv[1], logs[0])):
    time.sleep(0.01)
print(number, flush=True)
os.kill(os.getpid(), 9)
"""
    for durability in ("disk", "process"):
        whole = tmp_path / durability
        command = [sys.executable, "-c", program, str(whole), durability]
        subprocess.run(command, stdout=subprocess.PIPE, check=False)
        [log] = whole.glob("*.log")
        for harm in (_delete, _empty, _zero_end):
            path = tmp_path / f"{durability}-{harm.__name__}"
            shutil.copytree(whole, path)
            harm(path / log.name, 0.0)
            with pytest.raises(StorageCorrupt):
                RocksStorage(str(path))


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_a_folder_that_lost_any_of_its_files_is_refused_or_whole(
    folders: Callable[[str, str], Path], tmp_path: Path, end: str
) -> None:
    whole = folders("disk", end)
    patterns = ("FORMAT", "DURABLE", "CURRENT", "MANIFEST-*", "*.sst", "*.log")
    rest = [name for name in os.listdir(whole) if not any(map(Path(name).match, patterns))]
    path = tmp_path / "data"
    for kept in range(2 ** (len(patterns) + 1)):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        lost = [name for number, name in enumerate(patterns) if not kept >> number & 1]
        files = [file for pattern in lost for file in path.glob(pattern)]
        if not kept >> len(patterns) & 1:
            files += [path / name for name in rest]
        for file in files:
            file.unlink()
        if not os.listdir(path):
            continue  # then nobody can tell it from a new one
        before = sorted(os.listdir(path))
        try:
            assert _holds_everything(path), lost
        except StorageCorrupt:
            if "FORMAT" in lost:
                assert sorted(os.listdir(path)) == before
        else:
            assert "FORMAT" not in lost


def test_a_folder_without_its_format_opens_on_request(
    folders: Callable[[str, str], Path], tmp_path: Path
) -> None:
    path = tmp_path / "data"
    shutil.copytree(folders("disk", "killed"), path)
    (path / "FORMAT").unlink()
    with pytest.raises(StorageCorrupt, match="write 1 into its FORMAT file"):
        _holds_everything(path)
    (path / "FORMAT").write_text("1\n")
    assert _holds_everything(path)
    assert (path / "FORMAT").read_text() == f"{FORMAT_VERSION}\n"


@pytest.mark.parametrize("name", ["notes.txt", "app.jar", "lost+found", ".hidden"])
def test_a_folder_with_unrelated_files_is_not_a_new_one(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(StorageCorrupt, match="none that Stator wrote"):
        RocksStorage(str(tmp_path))
    assert os.listdir(tmp_path) == [name]


_CREATE = """
import os, sys
from stator.storage import folder
from stator.storage.rocks import RocksStorage
path, step = sys.argv[1], int(sys.argv[2])
left = iter(range(step))
def watch(frame, event, _):
    if frame.f_code.co_filename.endswith(("folder.py", "high_water.py")) and event == "line":
        if next(left, None) is None:
            os.kill(os.getpid(), 9)
    return watch
sys.settrace(watch)
RocksStorage(path)
sys.settrace(None)
"""


def test_a_store_killed_while_it_is_created_is_opened(tmp_path: Path) -> None:
    step, ended = 0, -9
    while ended == -9:
        path = tmp_path / str(step)
        command = [sys.executable, "-c", _CREATE, str(path), str(step)]
        ended = subprocess.run(command, check=False).returncode
        storage = RocksStorage(str(path))
        storage.write({b"a": b"1"})
        storage.close()
        step += 5
    assert ended == 0
    assert step > 20


def test_a_copy_has_a_mark_of_its_own(tmp_path: Path) -> None:
    storage = RocksStorage(str(tmp_path / "data"))
    for number in range(300):
        storage.write({b"%06d" % number: b"x" * 1000})
    storage.checkpoint(str(tmp_path / "copy"))
    storage.close()
    assert read_mark(tmp_path / "copy").number == 300
    for kept in range(0, next((tmp_path / "copy").glob("MANIFEST-*")).stat().st_size, 37):
        path = tmp_path / str(kept)
        shutil.copytree(tmp_path / "copy", path)
        os.truncate(next(path.glob("MANIFEST-*")), kept)
        with pytest.raises(StorageCorrupt):
            RocksStorage(str(path))


# --- restarts of the machine ----------------------------------------------------------------------


@pytest.fixture
def restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(high_water, "boot_id", lambda: b"another boot, 16")


@pytest.mark.usefixtures("restarted")
def test_without_fsync_a_restart_may_lose_writes_and_says_how_many(
    folders: Callable[[str, str], Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "data"
    shutil.copytree(folders("process", "killed before a table"), path)
    [log] = path.glob("*.log")
    os.truncate(log, 100_000)
    with caplog.at_level(logging.WARNING, "stator.storage"):
        storage = RocksStorage(str(path))
    found = [int(key) for key, _ in storage.scan(b"0", b"9")]
    storage.close()
    assert found == list(range(len(found)))
    assert 300 < len(found) < _WRITES
    [record] = caplog.records
    assert f"the last {_WRITES - len(found)} of {_WRITES} acknowledged" in record.getMessage()
    caplog.clear()
    RocksStorage(str(path)).close()
    assert not caplog.records, "it was said once"


@pytest.mark.usefixtures("restarted")
def test_without_fsync_holes_in_a_log_end_the_history_there(
    folders: Callable[[str, str], Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The system writes pages back in any order, so the log may lack one in the middle."""
    path = tmp_path / "data"
    shutil.copytree(folders("process", "killed before a table"), path)
    [log] = path.glob("*.log")
    content = bytearray(log.read_bytes())
    content[200_704:204_800] = bytes(4096)
    log.write_bytes(content)
    with caplog.at_level(logging.WARNING, "stator.storage"):
        storage = RocksStorage(str(path))
    found = [int(key) for key, _ in storage.scan(b"0", b"9")]
    storage.close()
    assert found == list(range(len(found)))
    assert 300 < len(found) < _WRITES
    assert len(caplog.records) == 1


@pytest.mark.usefixtures("restarted")
@pytest.mark.parametrize("end", ["closed", "killed"])
def test_without_fsync_a_restart_loses_nothing_that_was_stored_before(
    folders: Callable[[str, str], Path], tmp_path: Path, end: str
) -> None:
    """What a store held when it was opened or closed is on disk, whatever its durability."""
    whole = folders("process", end)
    [manifest] = whole.glob("MANIFEST-*")
    refused = 0
    for kept in range(0, manifest.stat().st_size, 37):
        path = tmp_path / str(kept)
        shutil.copytree(whole, path)
        os.truncate(path / manifest.name, kept)
        try:
            storage = RocksStorage(str(path))
        except StorageCorrupt:
            refused += 1
            continue
        found = len(list(storage.scan(b"0", b"9")))
        storage.close()
        assert found >= (_WRITES if end == "closed" else 300)
    assert refused


@pytest.mark.usefixtures("restarted")
def test_with_fsync_a_restart_loses_no_acknowledged_write(
    folders: Callable[[str, str], Path], tmp_path: Path
) -> None:
    for end in ("killed", "killed before a table"):
        path = tmp_path / end
        shutil.copytree(folders("disk", end), path)
        [log] = path.glob("*.log")
        os.truncate(log, 100_000)
        with pytest.raises(StorageCorrupt):
            RocksStorage(str(path))


@pytest.mark.usefixtures("restarted")
def test_with_fsync_an_unsynced_tail_may_be_missing_after_a_restart(tmp_path: Path) -> None:
    """A table stored meanwhile has the number of a write that was in the lost tail."""
    program = """
import os, sys
from stator.storage.rocks import RocksStorage
store = RocksStorage(sys.argv[1])
store.wait_durable(store.write({b"a": b"1"}))
store._db.flush()
store.wait_durable(store.write({b"b": b"1"}))
print(max(os.path.getsize(os.path.join(sys.argv[1], name))
      for name in os.listdir(sys.argv[1]) if name.endswith(".log")), flush=True)
store.write({b"c": b"1"})
os.kill(os.getpid(), 9)
"""
    path = tmp_path / "data"
    command = [sys.executable, "-c", program, str(path)]
    synced = int(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    os.truncate(max(path.glob("*.log")), synced)
    storage = RocksStorage(str(path))
    assert [key for key, _ in storage.scan(b"", b"\xff")] == [b"a", b"b"]
    storage.close()


# --- the mark itself ------------------------------------------------------------------------------


def test_a_mark_of_an_earlier_version_is_read(
    folders: Callable[[str, str], Path], tmp_path: Path
) -> None:
    path = tmp_path / "data"
    shutil.copytree(folders("disk", "killed"), path)
    slots = [number.to_bytes(8) for number in (899, 900)]
    checked = [slot + crc32(slot).to_bytes(4) for slot in slots]
    (path / "DURABLE").write_bytes(b"".join(checked))
    assert read_mark(path) == Mark(900)
    assert _holds_everything(path)
    assert read_mark(path).number == 900


def test_a_damaged_mark_is_noticed(folders: Callable[[str, str], Path], tmp_path: Path) -> None:
    chance = random.Random(3)
    path = tmp_path / "data"
    shutil.copytree(folders("disk", "killed"), path)
    whole = (path / "DURABLE").read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= chance.randrange(1, 256)
        (path / "DURABLE").write_bytes(damaged)
        assert read_mark(path).number in (0, 899, 900)
    (path / "DURABLE").write_bytes(chance.randbytes(len(whole)))
    assert read_mark(path) == Mark()
    with pytest.raises(StorageCorrupt, match="DURABLE"):
        _holds_everything(path)


def test_two_processes_that_open_at_once_do_not_take_each_other_for_damage(tmp_path: Path) -> None:
    path = tmp_path / "data"
    RocksStorage(str(path)).close()
    water = high_water.HighWater(path)
    with pytest.raises(StorageLocked):
        RocksStorage(str(path))
    water.close()
    RocksStorage(str(path)).close()
