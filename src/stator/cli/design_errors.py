"""What went wrong in a user's design file, in words: the file, the line, and what to write instead."""

from __future__ import annotations

import builtins
import difflib
import re
from types import FrameType

from stator import PUBLIC_NAMES
from stator.design.design import Design
from stator.design.entities.conditions import FieldRef
from stator.design.lint.location import Location, error_location
from stator.design.lint.refusals import trouble
from stator.errors import DesignError, DesignFileWrong

_PREFIX = re.compile(r"^(?P<path>[^\n:]+\.py):(?P<line>\d+): (?P<rest>.*)$", re.DOTALL)

# Where the words of a design come from, for whoever forgot to import one.
_WORDS = {
    **dict.fromkeys(PUBLIC_NAMES, "stator"),
    "datetime": "datetime",
    "date": "datetime",
    "Decimal": "decimal",
    "UUID": "uuid",
    "Enum": "enum",
    "Literal": "typing",
}


# --- a file that does not run -------------------------------------------------------------------------------


def explain(error: BaseException, target: str) -> DesignFileWrong:
    """Any exception that a design file ended in."""
    if isinstance(error, SyntaxError):
        return _syntax(error, target)
    where = error_location(error) or Location(target, 1)
    root = _root(error)
    if isinstance(error, DesignError):
        matched = _PREFIX.match(error.message)
        problem = matched["rest"] if matched else error.message
        if isinstance(root, (NameError, AttributeError)):
            return _wrong(
                where, f"{type(root).__name__}: {_first_line(root)}", _hint(root) or error.hint
            )
        return _wrong(where, problem, error.hint)
    if isinstance(error, SystemExit):
        return _wrong(
            where,
            "the file ends the program",
            'put what it runs under `if __name__ == "__main__":`',
        )
    return _wrong(
        where, f"{type(error).__name__}: {_first_line(error)}", _hint(error) or "correct that line"
    )


def _wrong(where: Location, problem: str, hint: str | None) -> DesignFileWrong:
    return DesignFileWrong(where.shown_path, where.line, problem, hint=hint, excerpt=where.excerpt)


def _syntax(error: SyntaxError, target: str) -> DesignFileWrong:
    where = Location(error.filename or target, error.lineno or 1)
    excerpt = (error.text or where.excerpt).rstrip()
    hint = f"look at column {error.offset}" if error.offset else "correct that line"
    return DesignFileWrong(
        where.shown_path,
        where.line,
        f"{type(error).__name__}: {error.msg}",
        hint=hint,
        excerpt=excerpt,
    )


def _root(error: BaseException) -> BaseException:
    """What was raised first: the planner wraps what a pattern raises while it is traced."""
    while isinstance(error, DesignError) and (error.__cause__ or error.__context__):
        error = error.__cause__ or error.__context__ or error
    return error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def _hint(error: BaseException) -> str | None:
    if isinstance(error, ModuleNotFoundError):
        return f"install {str(error.name).partition('.')[0]}, or run the command where it can be imported"
    if isinstance(error, ImportError) and error.name and error.name.startswith("stator"):
        wanted = str(error).partition("name '")[2].partition("'")[0]
        meant = next(iter(difflib.get_close_matches(wanted, sorted(_WORDS), n=1)), None)
        return f"write `from {_WORDS[meant]} import {meant}`" if meant else None
    if isinstance(error, NameError):
        return _name_hint(error)
    if isinstance(error, AttributeError):
        return _attribute_hint(error)
    if isinstance(error, TypeError) and "missing" in str(error):
        return "give every argument a value, by name"
    return None


def _name_hint(error: NameError) -> str | None:
    wanted = str(error.name)
    if wanted in _WORDS:
        return f"write `from {_WORDS[wanted]} import {wanted}` at the top"
    frame = _frame(error)
    known = {
        *(frame.f_globals if frame else ()),
        *(frame.f_locals if frame else ()),
        *dir(builtins),
        *_WORDS,
    }
    close = difflib.get_close_matches(wanted, sorted(known), n=1)
    return f"did you mean {close[0]}?" if close else f"define or import {wanted} above this line"


def _attribute_hint(error: AttributeError) -> str | None:
    owner, wanted = error.obj, str(error.name)
    if isinstance(owner, FieldRef):
        return f"{owner!r} is a field: compare it, or wrap it as attr({owner!r}) for begins_with, between and the like"
    names = [name for name in dir(owner) if not name.startswith("_")]
    close = difflib.get_close_matches(wanted, names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    if isinstance(owner, type):
        fields = [name for name in names if isinstance(getattr(owner, name, None), FieldRef)]
        return f"{owner.__name__} has {', '.join(fields)}" if fields else None
    return None


def _frame(error: BaseException) -> FrameType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame


# --- a design that cannot be planned ------------------------------------------------------------------------


def located(error: DesignError, design: Design) -> DesignError:
    """The same error, its message led by the line that it is about."""
    where, problem = trouble(error, design)
    if where is not None:
        excerpt = where.excerpt.strip()
        error.message = f"{where}: {problem}" + (
            f"\n{where.line:>6} | {excerpt}" if excerpt else ""
        )
        error.args = (error.message,)
    return error
