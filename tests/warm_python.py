"""Python processes that start at once: forks of one that has already imported Stator's commands.

Most of the time of a short command goes into imports, and tests of commands and of documentation
start hundreds. ``run`` has the result of ``subprocess.run([sys.executable, ...])``: the process has
its own memory, folder, environment, arguments and output, and knows nothing of the test process. It
differs in one point: what commands import is imported already. Tests of the start itself, of
signals and of kills start real processes.

The test process starts the parent of the forks once (``_Parent``) and sends it requests over a
socket: arguments, folder and environment as JSON, with the three standard files. The parent has one
thread, forks for each request, and reports the exit code.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import random
import runpy
import signal
import site
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Final

import stator

SOURCES: Final = Path(stator.__file__).parents[1]
_NUMBER: Final = struct.Struct("!i")


def run(
    *arguments: str,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    merged: bool = False,
    timeout: float = 60.0,
) -> subprocess.CompletedProcess[str]:
    """Run ``python`` with the arguments and return its exit code and its output.

    ``merged`` sends stderr to stdout. Arguments are ``-m module ...``, ``-c program ...`` or
    ``file.py ...``.
    """
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        open(os.devnull, "rb") as nothing,
    ):
        said = out if merged else err
        code = run_with(arguments, nothing, out, said, cwd=cwd, env=env, timeout=timeout)
        return subprocess.CompletedProcess(arguments, code, _text(out), _text(err))


def run_with(
    arguments: tuple[str, ...],
    stdin: IO[bytes] | int,
    stdout: IO[bytes] | int,
    stderr: IO[bytes] | int,
    *,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 60.0,
) -> int:
    """Run ``python`` with the arguments and these files, and return its exit code."""
    return _parent(os.getpid()).run(
        {
            "arguments": arguments,
            "folder": str(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
        },
        [file if isinstance(file, int) else file.fileno() for file in (stdin, stdout, stderr)],
        timeout,
    )


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


@cache
def _parent(process: int) -> _Parent:
    """The parent of this test process, which is started once."""
    return _Parent()


class _Parent:
    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONPATH": str(SOURCES)},
            )
        atexit.register(self.close)

    def close(self) -> None:
        self._socket.close()
        self._process.wait(timeout=10.0)

    def run(self, request: dict[str, Any], files: list[int], timeout: float) -> int:
        body = json.dumps(request).encode()
        self._socket.settimeout(timeout)
        socket.send_fds(self._socket, [_NUMBER.pack(len(body))], files)
        self._socket.sendall(body)
        child = self._number()
        try:
            return self._number()
        except TimeoutError:
            os.kill(child, signal.SIGKILL)
            self._socket.settimeout(10.0)
            self._number()
            raise subprocess.TimeoutExpired(request["arguments"], timeout) from None

    def _number(self) -> int:
        [number] = _NUMBER.unpack(_exactly(self._socket, _NUMBER.size))
        return int(number)


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found


# -- in the parent of the forks


def serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for each request. Returns the request in a fork, and None at the end of requests."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and they this
    while True:
        head, files, _, _ = socket.recv_fds(connection, _NUMBER.size, 3)
        if not head:
            return None
        head += _exactly(connection, _NUMBER.size - len(head))
        request: dict[str, Any] = json.loads(_exactly(connection, _NUMBER.unpack(head)[0]))
        child = os.fork()
        if not child:
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            connection.close()
            return request
        for file in files:
            os.close(file)
        connection.sendall(_NUMBER.pack(child))
        connection.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))


def become(request: dict[str, Any], paths: list[str]) -> None:
    """Do in a fork what ``python`` does at its start, and run the module or the file.

    ``paths`` are the places of installed modules.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        is_line = number == 2 or os.isatty(number)
        stream = os.fdopen(
            number,
            "w" if number else "r",
            buffering=1 if is_line else -1,
            encoding="utf-8",
            errors="backslashreplace" if number == 2 else "strict",
            closefd=False,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    arguments = request["arguments"]
    way = arguments[0]
    folders = {"-m": os.getcwd(), "-c": ""}
    first = folders.get(way, os.path.dirname(os.path.abspath(way)))
    named = os.environ.get("PYTHONPATH", "")
    given = [os.path.abspath(path) for path in named.split(os.pathsep)] if named else []
    sys.path[:] = [first, *dict.fromkeys((*given, *paths))]
    sys.argv = arguments[1:] if way == "-m" else arguments
    if way == "-m":
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif way == "-c":
        sys.argv = ["-c", *arguments[2:]]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(arguments[1], "<string>", "exec"), main.__dict__)
    else:
        runpy.run_path(way, run_name="__main__")


def _is_installed() -> bool:
    """Whether a file of the installation, such as an editable one's, adds the sources."""
    files = (file for folder in site.getsitepackages() for file in Path(folder).glob("*.pth"))
    return any(str(SOURCES) in file.read_text().splitlines() for file in files)


def _start() -> None:
    # This folder is not in it (-P). An installation may name the sources beside PYTHONPATH.
    paths = [path for path in sys.path if path != str(SOURCES)]
    if _is_installed():
        paths.append(str(SOURCES))
    from stator.cli.register import COMMANDS

    for module in (*(command.module for command in COMMANDS), "boto3"):
        import_module(module)
    # Forks share memory with this process until they write to it, which a collection would do.
    gc.collect()
    gc.freeze()
    assert threading.active_count() == 1  # a fork has only the thread that forked
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        request = serve(connection)
    if request is not None:
        become(request, paths)


if __name__ == "__main__":
    _start()
