"""Where the user's files declare a class, a field or a function.

A function knows its own line. A class does not (before Python 3.13), so the text of its module is
parsed, through the same cache that tracebacks use. A location that cannot be found is None: a
design may have been typed into a shell.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import linecache
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

import stator.errors

_OWN_SOURCES = str(Path(stator.errors.__file__).parents[1])


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A line of a file."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.shown_path}:{self.line}"

    @property
    def shown_path(self) -> str:
        """The path relative to the current folder, if the file is below it."""
        try:
            return str(Path(self.path).relative_to(Path.cwd()))
        except ValueError:
            return self.path

    @property
    def excerpt(self) -> str:
        """The text of the line."""
        return linecache.getline(self.path, self.line).rstrip()


def class_location(
    cls: type[Any], field: str | None = None, path: str | None = None
) -> Location | None:
    """Return where a class, or one of its fields, is declared.

    ``path`` is its file if its module could not be imported to the end. Returns None if the source
    cannot be found.
    """
    with contextlib.suppress(TypeError):  # no such module is loaded
        path = inspect.getsourcefile(cls)
    if path is None:
        return None
    node = _classes("".join(linecache.getlines(path))).get(cls.__qualname__)
    if node is None:
        return None
    lines = {
        each.target.id: each.lineno
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    return Location(path, lines.get(field or "", node.lineno))


@lru_cache(maxsize=64)
def _classes(text: str) -> dict[str, ast.ClassDef]:
    """Return every class of a module by qualified name.

    If several share a name, the last one counts.
    """
    found: dict[str, ast.ClassDef] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, ast.ClassDef):
                found[prefix + child.name] = child
                inner = f"{prefix}{child.name}."
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = f"{prefix}{child.name}.<locals>."
            visit(child, inner)

    try:
        visit(ast.parse(text), "")
    except SyntaxError:
        return {}
    return found


def function_location(function: Any) -> Location:
    """Return the line of a function's ``def``, which is below its decorators."""
    code = function.__code__
    first: int = code.co_firstlineno
    for line in range(first, first + 30):
        if linecache.getline(code.co_filename, line).lstrip().startswith(("def ", "async def ")):
            return Location(code.co_filename, line)
    return Location(code.co_filename, first)


def error_location(error: BaseException) -> Location | None:
    """Return the innermost line of user code that led to an error, or None if there is none.

    The tracebacks of the error and of its causes are searched. User code is everything outside
    Stator, installed packages and the standard library.
    """
    seen: set[int] = set()
    found: Location | None = None
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        found = _innermost(current.__traceback__) or found
        current = current.__cause__ or current.__context__
    return found


def _innermost(trace: TracebackType | None) -> Location | None:
    found = None
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if is_users(path):
            found = Location(path, trace.tb_lineno)
        trace = trace.tb_next
    return found


def is_users(path: str) -> bool:
    """Whether a file is outside Stator, installed packages and the standard library."""
    if path.startswith("<") or Path(path).is_relative_to(_OWN_SOURCES):
        return False
    return not any(
        part in ("site-packages", "dist-packages") for part in Path(path).parts
    ) and not Path(path).is_relative_to(_STANDARD_LIBRARY)


_STANDARD_LIBRARY = Path(inspect.getsourcefile(ast) or "").parent
