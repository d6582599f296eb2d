"""Finds the design that a command works on, and explains what is wrong with its file.

A target is ``shop.py``, ``shop.py:shop``, ``package.module:shop`` or a folder. Without a target,
the current folder is searched. ``[tool.stator] design = "..."`` in a folder's pyproject.toml names
its design. Otherwise it is in design.py, or in the only file that assigns a Design.

A design file is a program, so anything may go wrong in it. No error becomes a traceback: it names
the file, the line, the line's text and a correction. Text that the file prints goes to stderr,
because stdout belongs to the command.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import os
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

from stator.cli.design_errors import explain, located
from stator.design.design import Design
from stator.design.plan.lock_file import LockFile, lock_path
from stator.design.plan.plan import Plan
from stator.errors import ConfigurationError, DesignError, DesignFileWrong

DESIGN_HINT = "name a design as shop.py, shop.py:shop or package.module:shop"
APP_HINT = "name an app as work.py, work.py:app or package.module:app"


@dataclass(frozen=True, slots=True)
class DesignTarget:
    """A file or a module, and the name of an object in it.

    ``name`` may be None if the file has only one object of the wanted type.
    """

    file: Path | None
    module: str | None
    name: str | None

    def __str__(self) -> str:
        return str(self.file or self.module)


@dataclass(frozen=True)
class DesignFile:
    """A design and the file that a command names for it.

    That file usually defines the design, but it may also import it.
    """

    design: Design
    path: Path

    @cached_property
    def lock(self) -> Path:
        """The lock file: next to the file that defines the design.

        Raises ConfigurationError if the only lock file is next to ``path``, and another file
        defines the design. Programs that import the design would not find that lock file.
        """
        named = lock_path(self.design.name, self.path.parent)
        own = self.design.lock_file
        if own is None or own.path.parent == Path(os.path.abspath(named)).parent:
            return named
        if named.exists() and not own.path.exists():
            raise ConfigurationError(
                f"{named} is not next to the file that defines {self.design.name}",
                hint=f"move it to {own.path.parent}, where programs look for it",
            )
        folder = Path.cwd()
        return own.path.relative_to(folder) if own.path.is_relative_to(folder) else own.path

    @cached_property
    def frozen(self) -> Plan | None:
        """The plan in the lock file, read once, or None if there is no lock file."""
        return LockFile(self.design.name, self.lock.parent).read()


def load_design(target: str | None = None) -> Design:
    """Return the design that ``target`` names.

    Raises DesignFileWrong for a faulty file, and ConfigurationError if the file does not exist.
    """
    return load_design_file(target).design


def load_design_file(text: str | None = None, *, fresh: bool = False) -> DesignFile:
    """Return the design that ``text`` names, and its file.

    The design's plan keeps the base keys of the lock file. If ``fresh`` is true, the lock file is
    ignored.
    """
    target = _find(Path.cwd()) if text is None else parse_target(text)
    module = run_target(target)
    path = target.file or Path(module.__file__ or Path.cwd() / "design.py")
    file = DesignFile(_design_in(module, target), path)
    file.design.keep_to(None if fresh else file.frozen)
    return file


def plan_of(design: Design, rekey: Iterable[str] = ()) -> Plan:
    """Return the plan of a design. An error names the file and line of the pattern or entity.

    ``rekey`` names entities that may get another base key than the locked one.
    """
    try:
        return design.plan(rekey=rekey)
    except DesignError as error:
        raise located(error, design) from None


def choices(target: DesignTarget, names: Iterable[str]) -> str:
    """Return text that names these objects of a file as targets: ``shop.py:a or shop.py:b``."""
    return " or ".join(f"{target}:{name}" for name in names)


# --- which file -----------------------------------------------------------------------------------


def parse_target(text: str, hint: str = DESIGN_HINT) -> DesignTarget:
    """Parse a target from the command line. If that fails, the error has the given ``hint``."""
    if Path(text).is_dir():
        return _find(Path(text))
    head, colon, name = text.rpartition(":")
    if not colon:
        head, name = text, ""
    if head.endswith(".py"):
        file = Path(head)
        if not file.is_file():
            raise ConfigurationError(f"there is no file {head}", hint=_suggestion(file, hint))
        return DesignTarget(file, None, name or None)
    if not all(part.isidentifier() for part in head.split(".")):
        raise ConfigurationError(f"{text} is neither a file nor a module", hint=hint)
    if Path(f"{head}.py").is_file():
        return DesignTarget(Path(f"{head}.py"), None, name or None)
    return DesignTarget(None, head, name or None)


def _suggestion(missing: Path, hint: str) -> str:
    folder = missing.parent
    if hint == DESIGN_HINT and folder.is_dir():
        found = [str(file) for file in _design_files(folder)]
        if found:
            return f"did you mean {' or '.join(found)}?"
    return hint


def _find(folder: Path) -> DesignTarget:
    """Find the design of a folder."""
    settings = folder / "pyproject.toml"
    if settings.is_file():
        setting = _setting(settings)
        if setting is not None:
            return _parse_setting(setting, settings)
    file = folder / "design.py"
    if file.is_file():
        return DesignTarget(file, None, None)
    files = _design_files(folder)
    if len(files) == 1:
        return DesignTarget(files[0], None, None)
    where = "this folder" if folder == Path.cwd() else str(folder)
    if files:
        names = ", ".join(file.name for file in files)
        raise ConfigurationError(
            f"several files in {where} define a Design: {names}",
            hint=f"name one, for example {files[0]}; "
            f'or put design = "{files[0].name}" under [tool.stator] in pyproject.toml',
        )
    raise ConfigurationError(
        f"there is no design in {where}",
        hint="create a project with `stator new NAME`, write design.py with `shop = Design(...)`, "
        f"or {DESIGN_HINT}",
    )


def _setting(settings: Path) -> str | None:
    try:
        found = (
            tomllib.loads(settings.read_text(encoding="utf-8"))
            .get("tool", {})
            .get("stator", {})
            .get("design")
        )
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{settings} is not valid TOML: {error}", hint="correct that line"
        ) from None
    if found is None or isinstance(found, str):
        return found
    raise ConfigurationError(
        f"{settings}: design under [tool.stator] is {found!r}, not text",
        hint='write design = "shop.py:shop"',
    )


def _parse_setting(setting: str, settings: Path) -> DesignTarget:
    """Parse the target in pyproject.toml. A file is relative to the folder of pyproject.toml."""
    head = setting.rpartition(":")[0] if ":" in setting else setting
    if not head.endswith(".py"):
        return parse_target(setting)
    file = settings.parent / head
    if not file.is_file():
        raise ConfigurationError(
            f"{settings} names the design {setting}, but there is no file {head}",
            hint="correct `design = ...` under [tool.stator]",
        )
    return DesignTarget(file, None, setting[len(head) + 1 :] or None)


def _design_files(folder: Path) -> list[Path]:
    """Return the files in a folder that assign a Design, without running any of them."""
    return [
        file
        for file in sorted(folder.glob("*.py"))
        if not file.name.startswith("test_") and _assigns_design(file)
    ]


def _assigns_design(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    if "Design" not in text or "stator" not in text:
        return False
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # the file is run later, and its error explained
        return bool(re.search(r"^\w+.*=\s*(\w+\.)*Design\(", text, re.MULTILINE))
    assigned = [each.value for each in tree.body if isinstance(each, (ast.Assign, ast.AnnAssign))]
    return any(isinstance(each, ast.Call) and _called(each) == "Design" for each in assigned)


def _called(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else None


# --- running it -----------------------------------------------------------------------------------


def run_target(target: DesignTarget) -> ModuleType:
    """Import the file or module of a target. Every failure becomes an error with file and line."""
    folder = str(Path.cwd() if target.file is None else target.file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return (
                _import_file(Path(os.path.abspath(target.file)))
                if target.file
                else importlib.import_module(str(target.module))
            )
    except ModuleNotFoundError as error:
        if (
            target.module is not None
            and error.name
            and f"{target.module}.".startswith(f"{error.name}.")
        ):
            raise ConfigurationError(
                f"there is no module {error.name}, and no file {error.name}.py in this folder",
                hint="check the name, and run the command where the module can be imported",
            ) from None
        raise explain(error, str(target)) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a design file may raise anything, and may call sys.exit
        raise explain(error, str(target)) from None


def _import_file(file: Path) -> ModuleType:
    name = file.stem
    if name in sys.modules or not name.isidentifier():
        name = f"_design_of_{file.stem}"  # never replace a module that is already imported
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations are resolved through it
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _design_in(module: ModuleType, target: DesignTarget) -> Design:
    designs = {name: value for name, value in vars(module).items() if isinstance(value, Design)}
    path = str(target.file) if target.file else str(module.__file__ or target.module)
    if target.name is not None:
        return _named(module, target, designs, path)
    distinct = {id(value): value for value in designs.values()}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    if distinct:
        raise DesignFileWrong(
            path,
            1,
            f"the file defines several designs: {', '.join(designs)}",
            hint=f"name one: {choices(target, designs)}",
        )
    lookalike = next(
        (name for name in vars(module) if "design" in name.lower() and name != "Design"), None
    )
    raise DesignFileWrong(
        path,
        1,
        "the file defines no Design" + (f"; {lookalike} is no Design" if lookalike else ""),
        hint='end the file with `shop = Design("shop", [User, Order], [orders_of_user])`',
    )


def _named(
    module: ModuleType, target: DesignTarget, designs: dict[str, Design], path: str
) -> Design:
    name = str(target.name)
    if name in designs:
        return designs[name]
    problem = f"{name} is not a Design" if hasattr(module, name) else f"the file defines no {name}"
    hint = (
        f"write {choices(target, designs)}"
        if designs
        else f'write `{name} = Design("{name}", [...], [...])`'
    )
    raise DesignFileWrong(path, 1, problem, hint=hint)
