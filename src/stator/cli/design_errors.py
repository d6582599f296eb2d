"""Explains errors in a user's design file: the file, the line, and what to write instead."""

from __future__ import annotations

import builtins
import difflib
import re
from types import FrameType

import stator
from stator.design.design import Design
from stator.design.entities.conditions import FieldRef
from stator.design.lint.location import Location, class_location, error_location, is_users
from stator.design.lint.refused_patterns import locate
from stator.errors import DesignError, DesignFileWrong

_PREFIX = re.compile(r"^(?P<path>[^\n:]+\.py):(?P<line>\d+): (?P<rest>.*)$", re.DOTALL)
_FIELD = re.compile(r"(?P<entity>\w+)\.(?P<field>\w+): ")

_HOMES = {
    **dict.fromkeys(stator.__all__, "stator"),
    "datetime": "datetime",
    "date": "datetime",
    "Decimal": "decimal",
    "UUID": "uuid",
    "Enum": "enum",
    "Literal": "typing",
}
"""The module of each name that designs commonly import, for files that forgot one."""


# --- a file that does not run ---------------------------------------------------------------------


def explain(error: BaseException, target: str) -> DesignFileWrong:
    """Return an error with file, line and hint for an exception that a design file raised."""
    if isinstance(error, SyntaxError):
        return _syntax_error(error, target)
    where = error_location(error) or Location(target, 1)
    root = _root(error)
    if isinstance(error, DesignError):
        at_field = _field_error(error)
        if at_field is not None:
            return at_field
        matched = _PREFIX.match(error.message)
        problem = matched["rest"] if matched else error.message
        if isinstance(root, (NameError, AttributeError)):
            return _file_error(
                where, f"{type(root).__name__}: {_first_line(root)}", _hint(root) or error.hint
            )
        return _file_error(where, problem, error.hint)
    if isinstance(error, SystemExit):
        return _file_error(
            where,
            "the file exits the program when it is imported",
            'move the code that runs under `if __name__ == "__main__":`',
        )
    return _file_error(
        where, f"{type(error).__name__}: {_first_line(error)}", _hint(error) or "correct that line"
    )


def _file_error(where: Location, problem: str, hint: str | None) -> DesignFileWrong:
    return DesignFileWrong(where.shown_path, where.line, problem, hint=hint, excerpt=where.excerpt)


def _syntax_error(error: SyntaxError, target: str) -> DesignFileWrong:
    where = Location(error.filename or target, error.lineno or 1)
    excerpt = (error.text or where.excerpt).rstrip()
    hint = f"correct that line near column {error.offset}" if error.offset else "correct that line"
    return DesignFileWrong(
        where.shown_path,
        where.line,
        f"{type(error).__name__}: {error.msg}",
        hint=hint,
        excerpt=excerpt,
    )


def _root(error: BaseException) -> BaseException:
    """Return the original exception.

    The planner wraps exceptions that a pattern raises while it is traced.
    """
    while isinstance(error, DesignError) and (error.__cause__ or error.__context__):
        error = error.__cause__ or error.__context__ or error
    return error


def _field_error(error: DesignError) -> DesignFileWrong | None:
    """Return the error at the field that it is about, or None if it is about no field.

    A field's type is first looked at when a pattern is traced. The error then carries the
    pattern's line, and its cause names the field.
    """
    current: BaseException | None = error
    while isinstance(current, DesignError):
        named = _FIELD.match(current.message)
        frame = _users_frame(current)
        cls = frame.f_globals.get(named["entity"]) if named and frame else None
        if named and frame and isinstance(cls, type):
            where = class_location(cls, named["field"], frame.f_globals.get("__file__"))
            if where is not None:
                return _file_error(where, current.message, current.hint)
        current = current.__cause__ or current.__context__
    return None


def _users_frame(error: BaseException) -> FrameType | None:
    """Return the innermost frame of user code that led to an error."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            found = trace.tb_frame
        trace = trace.tb_next
    return found


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def _hint(error: BaseException) -> str | None:
    if isinstance(error, ModuleNotFoundError):
        package = str(error.name).partition(".")[0]
        return f"install {package}, or run the command where {package} can be imported"
    if isinstance(error, ImportError) and error.name and error.name.startswith("stator"):
        missing = str(error).partition("name '")[2].partition("'")[0]
        close = next(iter(difflib.get_close_matches(missing, sorted(_HOMES), n=1)), None)
        return f"write `from {_HOMES[close]} import {close}`" if close else None
    if isinstance(error, NameError):
        return _name_hint(error)
    if isinstance(error, AttributeError):
        return _attribute_hint(error)
    if isinstance(error, TypeError) and "missing" in str(error):
        return "pass the missing arguments by name"
    return None


def _name_hint(error: NameError) -> str | None:
    missing = str(error.name)
    if missing in _HOMES:
        return f"write `from {_HOMES[missing]} import {missing}` at the top"
    frame = _frame(error)
    known = {
        *(frame.f_globals if frame else ()),
        *(frame.f_locals if frame else ()),
        *dir(builtins),
        *_HOMES,
    }
    close = difflib.get_close_matches(missing, sorted(known), n=1)
    return f"did you mean {close[0]}?" if close else f"define or import {missing} above this line"


def _attribute_hint(error: AttributeError) -> str | None:
    owner, missing = error.obj, str(error.name)
    if isinstance(owner, FieldRef):
        return (
            f"{owner!r} is a field: compare it, or wrap it as attr({owner!r}) "
            f"for begins_with, between and other functions"
        )
    names = [name for name in dir(owner) if not name.startswith("_")]
    close = difflib.get_close_matches(missing, names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    if isinstance(owner, type):
        fields = [name for name in names if isinstance(getattr(owner, name, None), FieldRef)]
        return f"the fields of {owner.__name__} are {', '.join(fields)}" if fields else None
    return None


def _frame(error: BaseException) -> FrameType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame


# --- a design that cannot be planned --------------------------------------------------------------


def located(error: DesignError, design: Design) -> DesignError:
    """Put the file and line of an error at the start of its message, and return the error.

    The message stays the same if the location cannot be found.
    """
    where, problem = locate(error, design)
    if where is not None:
        excerpt = where.excerpt.strip()
        error.message = f"{where}: {problem}" + (
            f"\n{where.line:>6} | {excerpt}" if excerpt else ""
        )
        error.args = (error.message,)
    return error
