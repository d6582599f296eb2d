"""What the Python reference is made of: public modules, names, methods, and their docstrings.

``PUBLIC_MODULES`` is the one list of public modules; each module's ``__all__`` lists its names.
Griffe reads signatures and docstrings from the sources, because compiled modules do not have them.
Methods that a program makes when it is imported, such as those of ``Db``, are asked at run time.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Final

import griffe

from docsite.sources import ROOT

PUBLIC_MODULES: Final = (
    "stator",
    "stator.patterns",
    "stator.pipeline",
    "stator.bulk",
    "stator.testing",
    "stator.verification",
    "stator.engine",
    "stator.errors",
)

# Decorators of pattern objects: the method returns Work[T] or Pages[T], and a call T or iterates.
_RUN_BY_DB: Final = {"operation": "{}", "iteration": "Iterator[{}]"}
_LABELS: Final = ("async", "classmethod", "staticmethod", "property")


@dataclass(frozen=True, slots=True)
class Member:
    """A public method, property or attribute of a class."""

    name: str
    kind: str
    signatures: tuple[str, ...]
    doc: str
    owner: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class PublicName:
    """A name that a public module exports."""

    module: str
    name: str
    kind: str
    signatures: tuple[str, ...]
    doc: str
    bases: tuple[str, ...] = ()
    fields: tuple[Member, ...] = ()
    members: tuple[Member, ...] = ()

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True, slots=True)
class PublicModule:
    """A public module, with its names in alphabetical order."""

    name: str
    doc: str
    names: tuple[PublicName, ...] = field(default=())


@cache
def public_modules() -> tuple[PublicModule, ...]:
    """Every public module, read once."""
    package = griffe.load(
        "stator", search_paths=[str(ROOT / "src")], submodules=True, allow_inspection=False
    )
    assert isinstance(package, griffe.Module)
    return tuple(_module(package, name) for name in PUBLIC_MODULES)


def undocumented() -> Iterator[str]:
    """The public names and methods whose docstring is missing or only repeats the name."""
    for module in public_modules():
        if not says_something(module.name, module.doc):
            yield module.name
        for each in module.names:
            if not says_something(each.name, each.doc):
                yield each.path
            for member in each.members:
                if not says_something(member.name, member.doc):
                    yield f"{each.path}.{member.name}"


def says_something(name: str, doc: str) -> bool:
    """Whether a text tells more than the words of a name."""
    return len(_words(doc) - _words(name) - {"a", "an", "of", "the", "this"}) >= 2


def _words(text: str) -> set[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return {word.lower().removesuffix("s") for word in re.findall(r"[A-Za-z]+", spaced)}


def _module(package: griffe.Module, name: str) -> PublicModule:
    runtime = import_module(name)
    found: Any = package if name == "stator" else package[name.removeprefix("stator.")]
    names = sorted(runtime.__all__, key=str.lower)
    return PublicModule(
        name,
        _own_doc(found),
        tuple(_public(name, each, _target(found[each]), getattr(runtime, each)) for each in names),
    )


def _target(found: Any) -> Any:
    return found.final_target if found.is_alias else found


def _public(module: str, name: str, found: Any, runtime: Any) -> PublicName:
    if found.is_class:
        return _class(module, name, found, runtime)
    doc = _own_doc(found)
    at_run_time = inspect.getdoc(runtime) or ""
    if at_run_time.startswith(doc):  # a decorator may have added to it
        doc = at_run_time
    if found.is_function:
        return PublicName(module, name, "function", _signatures(found), doc)
    annotation = "" if found.annotation is None else f": {found.annotation}"
    value = "" if found.value is None else f" = {found.value}"
    return PublicName(module, name, "value", (f"{name}{annotation}{value}",), doc)


def _class(module: str, name: str, found: Any, runtime: type) -> PublicName:
    own = [*found.mro()]
    bases = tuple(str(base) for base in found.bases)
    members = {}
    for holder in [found, *own]:
        for key, each in holder.members.items():
            if not key.startswith("_") and key not in members:
                members[key] = (_target(each), holder)
    is_data = "dataclass" in found.labels
    fields, methods = [], []
    for key, (each, holder) in members.items():
        member = _member(key, each, holder.name, runtime, own)
        if member is None:
            continue
        if member.kind != "attribute":
            methods.append(member)
        elif member.doc or (is_data and member.signatures[0]):
            fields.append(member)
    return PublicName(
        module,
        name,
        "class",
        _constructor(name, found, own),
        _class_doc(found),
        bases,
        tuple(fields),
        tuple(methods),
    )


def _class_doc(found: Any) -> str:
    """The docstring of a class, and that of its constructor."""
    made = found.members.get("__init__")
    docs = (_own_doc(found), "" if made is None else _own_doc(_target(made)))
    return "\n\n".join(doc for doc in docs if doc)


def _constructor(name: str, found: Any, ancestors: list[Any]) -> tuple[str, ...]:
    """How a class is called; nothing if it is not made for that."""
    is_protocol = any(str(base).startswith("Protocol") for base in found.bases)
    for holder in [found, *ancestors]:
        made = holder.members.get("__init__")
        if made is not None and not is_protocol:
            return tuple(
                re.sub(r"\) -> None$", ")", each.replace("__init__", name, 1))
                for each in _signatures(_target(made))
            )
    return ()


def _member(key: str, each: Any, owner: str, runtime: type, ancestors: list[Any]) -> Member | None:
    doc = _own_doc(each) or _inherited_doc(key, ancestors)
    if each.is_function:
        labels = [label for label in _LABELS if label in each.labels]
        kind = " ".join([*(label for label in labels if label != "property"), "method"])
        return Member(key, kind, _signatures(each), doc, owner)
    if not each.is_attribute:
        return None
    annotation = "" if each.annotation is None else str(each.annotation)
    if "property" in each.labels:
        shown = f"{key}: {annotation}" if annotation else key
        return Member(key, "property", (shown,), doc, owner)
    made = inspect.getattr_static(runtime, key, None)
    if inspect.isfunction(made):  # made at import, from a method that plans
        signature = _tidy(str(inspect.signature(made)).replace("'", ""))
        is_async = inspect.iscoroutinefunction(made)
        kind = "async method" if is_async else "method"
        return Member(key, kind, (key + signature,), inspect.getdoc(made) or "", owner)
    default = None if each.value is None else str(each.value)
    return Member(key, "attribute", (annotation,), _own_doc(each), owner, default)


def _signatures(found: Any) -> tuple[str, ...]:
    """The signatures of a function, one for each overload."""
    each = found.overloads or [found]
    run_by_db = [_RUN_BY_DB[name] for name in _decorators(found) if name in _RUN_BY_DB]
    shown = [_tidy(one.signature()) for one in each]
    if run_by_db:
        shown = [
            re.sub(r"-> \w+\[(.*)\]$", lambda match: f"-> {run_by_db[0].format(match[1])}", one)
            for one in shown
        ]
    return tuple(shown)


def _decorators(found: Any) -> list[str]:
    return [str(decorator.value) for decorator in found.decorators]


def _tidy(signature: str) -> str:
    """A signature without ``self`` and with the quotes that the sources use."""
    return re.sub(r"\((?:self|cls)(?:, /)?(?:, )?", "(", signature, count=1).replace("'", '"')


def _own_doc(found: Any) -> str:
    return inspect.cleandoc(found.docstring.value) if found.docstring else ""


def _inherited_doc(key: str, ancestors: list[Any]) -> str:
    for holder in ancestors:
        each = holder.members.get(key)
        if each is not None and (doc := _own_doc(_target(each))):
            return doc
    return ""
