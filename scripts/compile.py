"""`make compile`: compile the hot modules to C extensions with mypyc, beside their sources.

The same Python runs compiled or interpreted; compiled, it answers about twice as many requests per
core. Without a C compiler, or with STATOR_COMPILE=0, the script says so and everything runs
interpreted. STATOR_COMPILE=debug adds line tables for gdb and profilers (docs/debugging.md).
`--remove` (`make interpreted`) removes the extensions. `--cached` (`make demo`) installs them only
if a compilation of the same sources is in the cache. `--link-sources DIR` makes a folder with links
to the sources alone: with it first on PYTHONPATH, everything runs interpreted while the extensions
stay where they are.

Every compilation is kept in `~/.cache/stator/compiled`, or below `XDG_CACHE_HOME`, in a folder
named for the hash of all that it depends on. A second checkout, or a branch that you return to,
takes it from there. Compilations of one user run one after another. One that stops half way leaves
nothing behind: it works in a temporary folder, which is renamed when it is complete.
"""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = ROOT / "src"
SUFFIXES: Final = (".so", ".pyd")
# Only the extensions of this Python: those of other versions may stand beside them.
SUFFIX: Final = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
# The code of all modules. The extension beside each module is a stub that imports this one.
LIBRARY: Final = f"stator__mypyc{SUFFIX}"
INSTALLED: Final = SOURCES / f"{LIBRARY}.fingerprint"
KEPT_COMPILATIONS: Final = 6
CORES: Final = os.cpu_count() or 1
# The -O and -g levels of the C compiler. Code at -O2 and -O3 takes up to twice as long to compile
# and is not measurably faster: docs/decisions/0006-compiled.md has the figures.
OPTIMISATION: Final = ("0", "3") if os.environ.get("STATOR_COMPILE") == "debug" else ("1", "0")


def modules() -> list[Path]:
    """The modules listed in pyproject.toml without ``__init__`` files, relative to the sources."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["stator"]["compiled"]
    paths = [path for pattern in patterns for path in sorted(SOURCES.glob(pattern))]
    return [path.relative_to(SOURCES) for path in paths if path.name != "__init__.py"]


def link_sources(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for path in SOURCES.rglob("*"):
        if path.is_file() and path.suffix not in (*SUFFIXES, ".pyc"):
            link = folder / path.relative_to(SOURCES)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def has_compiler() -> bool:
    headers = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return shutil.which(_compiler()[0]) is not None and headers.exists()


def _compiler() -> list[str]:
    # setuptools obeys CC too: CC="ccache cc" works.
    return (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()


# -- compile


def build(target: Path) -> list[Path]:
    """Compile into ``target``; returns the new files, relative to it.

    It runs in a temporary folder, because mypyc leaves C files, caches and objects where it runs.
    """
    from mypyc.build import mypycify
    from setuptools import Distribution

    with tempfile.TemporaryDirectory() as scratch, chdir(scratch):
        shutil.copytree(
            SOURCES / "stator", "stator", ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
        extensions = mypycify(
            ["--ignore-missing-imports", *map(str, modules())],
            opt_level=OPTIMISATION[0],
            debug_level=OPTIMISATION[1],
            group_name="stator",
            multi_file=True,  # one C file for each module, so that all cores have work
        )
        command = _parallel_build_ext()(Distribution({"name": "stator", "ext_modules": extensions}))
        command.inplace = True
        command.parallel = CORES
        command.ensure_finalized()
        command.run()
        extension_files = [
            path
            for path in Path().rglob("*")
            if path.suffix in SUFFIXES and path.parts[0] != "build"
        ]
        for path in extension_files:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target / path)
    return extension_files


def _parallel_build_ext() -> Any:
    """setuptools compiles extensions in parallel, but the files of one extension in turn."""
    from setuptools.command.build_ext import build_ext

    class ParallelBuildExt(build_ext):
        def build_extensions(self) -> None:
            compile_in_turn = self.compiler.compile

            def compile_in_parallel(sources: Sequence[str], **options: Any) -> list[str]:
                # The largest first, or the last core works alone at the end.
                ordered = sorted(sources, key=os.path.getsize, reverse=True)
                with ThreadPoolExecutor(CORES) as pool:
                    done = pool.map(lambda source: compile_in_turn([source], **options), ordered)
                    return [name for names in done for name in names]

            self.compiler.compile = compile_in_parallel
            super().build_extensions()

    return ParallelBuildExt


# -- the cache


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "stator" / "compiled"


def fingerprint() -> str:
    """The hash of everything the extensions depend on.

    mypyc puts types and constants of imported modules into its C code, so the modules that the
    compiled ones import count too, and the versions of the packages whose types they use.
    """
    digest = hashlib.sha256()
    facts = [
        SUFFIX,
        sys.version,
        platform.platform(),
        *_compiler(),
        *OPTIMISATION,
        os.environ.get("CFLAGS", ""),
        *map(str, modules()),
    ]
    digest.update("\0".join(facts).encode())
    files = [Path(__file__), ROOT / "requirements.lock"]
    for path in [*files, *sorted(imported(SOURCES / module for module in modules()))]:
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:32]


def imported(paths: Iterator[Path]) -> set[Path]:
    """These modules and the modules of Stator that they import, directly or not."""
    waiting, found = list(paths), set()
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                continue
            waiting += (file for name in names for file in _files_of(name))
    return found


def _files_of(module: str) -> Iterator[Path]:
    """The files that Python runs to import a module of Stator, packages included."""
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        place = SOURCES.joinpath(*parts[:count])
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.exists():
                yield path


def prune(folder: Path) -> None:
    entries = sorted(folder.glob("[0-9a-f]*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for entry in entries[KEPT_COMPILATIONS:]:
        shutil.rmtree(entry, ignore_errors=True)


# -- into the checkout


def remove() -> None:
    """Remove this Python's extensions; the library first, so that none is used half way."""
    for path in (INSTALLED, SOURCES / LIBRARY, *SOURCES.rglob(f"*{SUFFIX}*")):
        path.unlink(missing_ok=True)


def install(entry: Path) -> None:
    """Copy the extensions beside their sources; the library last, because nothing runs without.

    Compiled modules and interpreted ones do not mix. A process that starts meanwhile, or after a
    kill in between, fails to import instead of running a mixture.
    """
    files = [path.relative_to(entry) for path in entry.rglob(f"*{SUFFIX}")]
    if INSTALLED.exists() and INSTALLED.read_text() == entry.name:
        for path in files:  # Git may have touched their sources; tests refuse older extensions
            (SOURCES / path).touch()
        return
    with _uninterrupted():
        remove()
        for path in sorted(files, key=lambda path: path.name == LIBRARY):
            shutil.copyfile(entry / path, SOURCES / f"{path}.new")
            (SOURCES / f"{path}.new").rename(SOURCES / path)
        INSTALLED.write_text(entry.name)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One compilation at a time: two would take as long, and install over each other."""
    import fcntl  # not on Windows, where the build hook imports this module too

    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another compilation to finish", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# -- the commands


def compile_or_reuse() -> None:
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        for leftover in folder.glob("tmp-*"):  # of a compilation that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        entry = folder / fingerprint()
        if entry.exists():
            entry.touch()
            print(f"{len(modules())} compiled modules, from {entry}")
        else:
            _compile_into(entry)
            prune(folder)
        install(entry)


def _compile_into(entry: Path) -> None:
    print(
        f"compiling {len(modules())} modules with mypyc on {CORES} cores,"
        f" about {15 + 40 // CORES} s; STATOR_COMPILE=0 skips it",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=entry.parent) as scratch:
        command = [sys.executable, __file__, "--build", f"{scratch}/built"]
        with Path(scratch, "log").open("w+") as log:
            done = subprocess.run(command, stdout=log, stderr=log)  # noqa: S603 - this script
            if done.returncode != 0:
                log.seek(0)
                print("".join(log.readlines()[-40:]), file=sys.stderr)
                sys.exit("error: the modules do not compile; STATOR_COMPILE=0 goes on without")
        Path(scratch, "built").rename(entry)


def reuse() -> None:
    """Install what the cache has; without that, leave everything interpreted."""
    folder = cache_folder()
    entry = folder / fingerprint() if folder.exists() else folder
    if entry == folder or not entry.exists():
        remove()
        print("not compiled: everything runs interpreted; `make compile` makes it faster")
        return
    with _alone(entry.parent):
        install(entry)
    print(f"{len(modules())} compiled modules, from {entry}")


def main() -> None:
    match sys.argv[1:]:
        case ["--link-sources", folder]:
            link_sources(Path(folder))
        case ["--build", folder]:
            build(Path(folder))
        case ["--remove"]:
            remove()
        case _ if os.environ.get("STATOR_COMPILE") == "0":
            remove()
            print("STATOR_COMPILE=0: everything runs interpreted")
        case ["--cached"]:
            reuse()
        case _ if not has_compiler():
            remove()
            print(
                "no C compiler or no Python headers found: Stator runs interpreted,"
                " with the same behaviour but slower"
            )
        case _:
            compile_or_reuse()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted; nothing is changed")
