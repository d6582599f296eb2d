"""A fork of a warm Python does what a Python that is started does (``tests/warm_python.py``)."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from . import warm_python

FACTS = """
import atexit, json, os, random, sys
atexit.register(lambda: print("at exit"))
import beside
print(json.dumps({
    "arguments": sys.argv, "folder": os.getcwd(), "main": __name__,
    "file": os.path.basename(globals().get("__file__", "none")),
    "environment": dict(os.environ), "path": sys.path, "encoding": sys.stdout.encoding,
    "terminals": [each.isatty() for each in (sys.stdin, sys.stdout, sys.stderr)],
    "beside": beside.WORD, "input": sys.stdin.read(),
}))
print("to stderr", file=sys.stderr)
"""
ENDS = {
    "exit": "import sys; sys.exit(3)",
    "text": "import sys; sys.exit('gone')",
    "error": "print('before'); raise ValueError('wrong')",
    "interrupt": "raise KeyboardInterrupt",
    "kill": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "thread": "import threading as t; t.Timer(0.05, lambda: print('a thread ends first')).start()",
}


def cold(*arguments: str, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip


def environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "LC_CTYPE": "C.UTF-8", "WORD": "ä", "PYTHONPATH": f"{folder / 'lib'}"}


@pytest.mark.parametrize(
    "how", [["facts.py", "a", "b c"], ["-m", "facts", "--x"], ["-c", FACTS, "a"]]
)
def test_a_program_finds_the_same(tmp_path: Path, how: list[str]) -> None:
    (tmp_path / "facts.py").write_text(FACTS)
    (tmp_path / "beside.py").write_text("WORD = 'from the folder'\n")
    started = cold(*how, folder=tmp_path, env=environment(tmp_path))
    forked = warm_python.run(*how, cwd=tmp_path, env=environment(tmp_path))
    assert started.returncode == 0, started.stderr
    facts, end = started.stdout.splitlines()
    assert json.loads(forked.stdout.splitlines()[0]) == json.loads(facts)
    assert forked.stdout.splitlines()[1:] == [end]
    assert (forked.returncode, forked.stderr) == (0, started.stderr)


@pytest.mark.parametrize("name", ENDS)
def test_a_program_ends_the_same(tmp_path: Path, name: str) -> None:
    (tmp_path / "end.py").write_text(ENDS[name])
    started = cold("end.py", folder=tmp_path, env=environment(tmp_path))
    forked = warm_python.run("end.py", cwd=tmp_path, env=environment(tmp_path))
    assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
    assert forked.stderr.splitlines()[-1:] == started.stderr.splitlines()[-1:]


def test_programs_know_nothing_of_each_other(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("import os; os.environ['LEFT'] = '1'; print(os.getpid())")
    pids = {warm_python.run("-m", "shop", cwd=tmp_path).stdout for _ in range(3)}
    assert len(pids) == 3
    other = tmp_path / "other"
    other.mkdir()
    (other / "shop.py").write_text("import os; print('the other', os.environ.get('LEFT'))")
    assert warm_python.run("-m", "shop", cwd=other).stdout == "the other None\n"


def test_output_can_be_merged_in_order(tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text(
        "import sys\nfor n in range(3):\n"
        " print(n, flush=True)\n print('-', file=sys.stderr, flush=True)\n"
    )
    assert warm_python.run("both.py", cwd=tmp_path, merged=True).stdout == "0\n-\n1\n-\n2\n-\n"


def test_a_program_can_have_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "tell.py").write_text("import sys; print(sys.stdout.isatty(), sys.stdin.isatty())")
    leader, follower = pty.openpty()
    code = warm_python.run_with(("tell.py",), follower, follower, follower, cwd=tmp_path)
    os.close(follower)
    assert (code, os.read(leader, 100)) == (0, b"True True\r\n")
    os.close(leader)


def test_a_program_that_does_not_end_is_killed_and_the_next_runs(tmp_path: Path) -> None:
    (tmp_path / "sleep.py").write_text("import time; time.sleep(600)")
    with pytest.raises(subprocess.TimeoutExpired):
        warm_python.run("sleep.py", cwd=tmp_path, timeout=0.3)
    (tmp_path / "next.py").write_text("print('ran')")
    assert warm_python.run("next.py", cwd=tmp_path).stdout == "ran\n"
