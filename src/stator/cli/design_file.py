"""Finding the design that a command is about, and saying what is wrong with its file.

A target is ``shop.py``, ``shop.py:shop``, ``package.module:shop`` or a folder. Without one, the design of the current folder is meant:
what ``[tool.stator] design = "..."`` in its pyproject.toml names, or design.py, or the only file that makes a Design.

A design file is a program, so anything may go wrong in it. Nothing of that becomes a traceback: the error has the file, the line,
the line's text and what to write instead. What the file prints goes to stderr, for stdout belongs to the command.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from stator.cli.design_errors import explain, located
from stator.design.design import Design
from stator.design.plan.lock import lock_path, read_lock
from stator.design.plan.plan import Plan
from stator.errors import ConfigurationError, DesignError, DesignFileWrong

_HOW = "name it: `stator plan shop.py`, `stator plan shop.py:shop` or `stator plan package.module:shop`"


@dataclass(frozen=True, slots=True)
class DesignTarget:
    """A file or a module, and the name of the design in it when there may be several."""

    file: Path | None
    module: str | None
    name: str | None

    def __str__(self) -> str:
        return str(self.file or self.module)


@dataclass(frozen=True, slots=True)
class DesignFile:
    """A design and the file it is in; its lock file stands beside that."""

    design: Design
    path: Path

    @property
    def lock(self) -> Path:
        return lock_path(self.design.name, self.path.parent)


def load_design(target: str | None = None) -> Design:
    """The design that ``target`` names. Raises DesignFileWrong, or ConfigurationError where there is no such file."""
    return load_design_file(target).design


def load_design_file(target: str | None = None, *, fresh: bool = False) -> DesignFile:
    """The design that ``target`` names, to be planned from its lock file on; ``fresh``: as if there were none."""
    wanted = _find(Path.cwd()) if target is None else parse_target(target)
    module = run_target(wanted)
    file = DesignFile(
        _design_in(module, wanted), wanted.file or Path(module.__file__ or Path.cwd() / "design.py")
    )
    file.design.keep_to(None if fresh else read_lock(file.lock))
    return file


def plan_of(design: Design) -> Plan:
    """The plan of a design; what the planner refuses is said with the file and line of the pattern or entity."""
    try:
        return design.plan()
    except DesignError as error:
        raise located(error, design) from None


# --- which file ---------------------------------------------------------------------------------------------


def parse_target(target: str) -> DesignTarget:
    if Path(target).is_dir():
        return _find(Path(target))
    head, colon, name = target.rpartition(":")
    if not colon:
        head, name = target, ""
    if head.endswith(".py"):
        file = Path(head)
        if not file.is_file():
            raise ConfigurationError(f"there is no file {head}", hint=_suggestion(file))
        return DesignTarget(file, None, name or None)
    if not all(part.isidentifier() for part in head.split(".")):
        raise ConfigurationError(f"{target} is neither a file nor a module", hint=_HOW)
    if Path(f"{head}.py").is_file():
        return DesignTarget(Path(f"{head}.py"), None, name or None)
    return DesignTarget(None, head, name or None)


def _suggestion(missing: Path) -> str:
    folder = missing.parent
    found = [str(file) for file in _makers(folder)] if folder.is_dir() else []
    return f"did you mean {' or '.join(found)}?" if found else _HOW


def _find(folder: Path) -> DesignTarget:
    """The design of a folder."""
    settings = folder / "pyproject.toml"
    if settings.is_file():
        named = _setting(settings)
        if named is not None:
            return _parse_setting(named, settings)
    file = folder / "design.py"
    if file.is_file():
        return DesignTarget(file, None, None)
    makers = _makers(folder)
    if len(makers) == 1:
        return DesignTarget(makers[0], None, None)
    where = "this folder" if folder == Path.cwd() else str(folder)
    if makers:
        names = ", ".join(file.name for file in makers)
        raise ConfigurationError(
            f"several files in {where} make a Design: {names}",
            hint=f'{_HOW}; or put design = "{makers[0].name}" under [tool.stator] in pyproject.toml',
        )
    raise ConfigurationError(
        f"there is no design in {where}",
        hint=f"write design.py with `shop = Design(...)` in it; or {_HOW}",
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
            f"{settings.name} cannot be read: {error}", hint="correct it"
        ) from None
    if found is None or isinstance(found, str):
        return found
    raise ConfigurationError(
        f"{settings.name}: design under [tool.stator] is not text",
        hint='write design = "shop.py:shop"',
    )


def _parse_setting(named: str, settings: Path) -> DesignTarget:
    """As on the command line, but paths are seen from the folder of pyproject.toml."""
    head = named.rpartition(":")[0] if ":" in named else named
    if not head.endswith(".py"):
        return parse_target(named)
    file = settings.parent / head
    if not file.is_file():
        raise ConfigurationError(
            f"{settings.name} names the design {named}, and there is no file {head}",
            hint="correct design = ... under [tool.stator]",
        )
    return DesignTarget(file, None, named[len(head) + 1 :] or None)


def _makers(folder: Path) -> list[Path]:
    """The files in a folder that make a design, found without running any."""
    return [
        file
        for file in sorted(folder.glob("*.py"))
        if not file.name.startswith("test_") and _makes_design(file)
    ]


def _makes_design(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    if "Design" not in text or "stator" not in text:
        return False
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # let it be run, and explained
        return bool(re.search(r"^\w+.*=\s*(\w+\.)*Design\(", text, re.MULTILINE))
    assigned = [each.value for each in tree.body if isinstance(each, (ast.Assign, ast.AnnAssign))]
    return any(isinstance(each, ast.Call) and _called(each) == "Design" for each in assigned)


def _called(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else None


# --- running it ---------------------------------------------------------------------------------------------


def run_target(target: DesignTarget) -> ModuleType:
    folder = str(Path.cwd() if target.file is None else target.file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return (
                _import_file(target.file.resolve())
                if target.file
                else importlib.import_module(str(target.module))
            )
    except ModuleNotFoundError as error:
        if (
            target.module is not None
            and error.name
            and f"{target.module}.".startswith(f"{error.name}.")
        ):
            raise ConfigurationError(f"there is no module {error.name}", hint=_HOW) from None
        raise explain(error, str(target)) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a design file may raise anything, and may call sys.exit
        raise explain(error, str(target)) from None


def _import_file(file: Path) -> ModuleType:
    name = file.stem
    if name in sys.modules or not name.isidentifier():
        name = f"_design_of_{file.stem}"  # never in the place of a module that somebody else has imported
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations are looked up there
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
        return _named(module, target.name, designs, path)
    different = {id(value): value for value in designs.values()}
    if len(different) == 1:
        return next(iter(different.values()))
    if different:
        choices = " or ".join(f"{target}:{name}" for name in designs)
        raise DesignFileWrong(
            path,
            1,
            f"there are several designs in it: {', '.join(designs)}",
            hint=f"say which: {choices}",
        )
    called = next(
        (name for name in vars(module) if "design" in name.lower() and name != "Design"), None
    )
    raise DesignFileWrong(
        path,
        1,
        "there is no Design in it" + (f" (only {called}, which is not one)" if called else ""),
        hint='end the file with `shop = Design("shop", [User, Order], [orders_of_user])`',
    )


def _named(module: ModuleType, name: str, designs: dict[str, Design], path: str) -> Design:
    if name in designs:
        return designs[name]
    kind = "is not a Design" if hasattr(module, name) else "is not in it"
    hint = (
        f"there is {', '.join(designs)}"
        if designs
        else f'write `{name} = Design("{name}", [...], [...])`'
    )
    raise DesignFileWrong(path, 1, f"{name} {kind}", hint=hint)
