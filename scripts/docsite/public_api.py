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
    "stator.data",
    "stator.patterns",
    "stator.pipeline",
    "stator.bulk",
    "stator.plans",
    "stator.costs",
    "stator.telemetry",
    "stator.testing",
    "stator.verification",
    "stator.ops",
    "stator.design.simulation",
    "stator.design.documents",
    "stator.design.export",
    "stator.design.infer",
    "stator.engine",
    "stator.errors",
)

# Classes that programs only receive: their constructors are not public.
RECEIVED: Final = frozenset(
    """
    stator.AsyncDb
    stator.Bundle2
    stator.Bundle3
    stator.Bundle4
    stator.BundleMany
    stator.Count
    stator.Db
    stator.Engine
    stator.Only
    stator.Page
    stator.Query
    stator.bulk.BulkTarget
    stator.bulk.ExportJob
    stator.bulk.LoadPlan
    stator.data.AsyncUpdate
    stator.data.BatchResult
    stator.data.DryRun
    stator.data.ExplainedTransaction
    stator.data.ExplainedUpdate
    stator.data.SyncUpdate
    stator.data.Transaction
    stator.design.documents.Document
    stator.design.export.ExportSource
    stator.engine.Engine
    stator.patterns.HeldLock
    stator.patterns.LockLease
    stator.patterns.SeriesRollup
    stator.patterns.UniqueAuditReport
    stator.pipeline.Change
    stator.pipeline.Insert
    stator.pipeline.Modify
    stator.pipeline.ProjectionReader
    stator.pipeline.Remove
    stator.pipeline.RunningWorker
    stator.pipeline.ViewReader
    stator.plans.EntityPlan
    stator.plans.IndexPlan
    stator.plans.PatternPlan
    stator.plans.Plan
    stator.plans.TablePlan
    """.split()
)
# What other floors of the house use of a public class. It may change in any release.
INTERNAL: Final = frozenset(
    """
    stator.bulk.BulkTarget.blob_store
    stator.bulk.BulkTarget.entity
    stator.bulk.BulkTarget.entity_writer
    stator.bulk.BulkTarget.owned_transport
    stator.bulk.BulkTarget.schema
    stator.bulk.BulkTarget.transport
    stator.bulk.ExportJob.source
    stator.bulk.LoadPlan.encoder
    stator.bulk.LoadPlan.entries
    stator.bulk.LoadPlan.entries_from
    stator.bulk.LoadPlan.journal
    stator.bulk.RowCounts.add
    stator.data.BatchResult.add
    stator.data.Transaction.commit
    stator.patterns.LockLease.hold
    stator.pipeline.ShardProgress.add_batch
    stator.pipeline.ShardProgress.add_count
    """.split()
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
def _package() -> griffe.Module:
    package = griffe.load(
        "stator", search_paths=[str(ROOT / "src")], submodules=True, allow_inspection=False
    )
    assert isinstance(package, griffe.Module)
    return package


@cache
def public_modules() -> tuple[PublicModule, ...]:
    """Every public module, read once."""
    return tuple(_module(_package(), name) for name in PUBLIC_MODULES)


def loaded(module: str) -> Iterator[tuple[str, Any]]:
    """Yield each name that a public module exports, with its definition as Griffe reads it."""
    found: Any = _package() if module == "stator" else _package()[module.removeprefix("stator.")]
    for name in import_module(module).__all__:
        yield name, target_of(found[name])


def exists(path: str) -> bool:
    """Whether a public class, or a member of one, still has this path."""
    module = max((each for each in PUBLIC_MODULES if path.startswith(f"{each}.")), key=len)
    name, _, member = path.removeprefix(f"{module}.").partition(".")
    found = dict(loaded(module)).get(name)
    if found is None or not member:
        return found is not None
    return any(member in holder.members for holder in [found, *found.mro()])


def shown_members(path: str, found: Any) -> Iterator[tuple[str, Any]]:
    """Yield the constructor and the members of a class that its page shows."""
    seen: set[str] = set()
    for holder in [found, *found.mro()]:
        for name, member in holder.members.items():
            is_made = name == "__init__" and path not in RECEIVED
            is_public = not name.startswith("_") and f"{path}.{name}" not in INTERNAL
            if name not in seen and (is_made or is_public or name in ("__enter__", "__aenter__")):
                seen.add(name)
                yield name, target_of(member)


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
    exported = sorted(loaded(name), key=lambda each: each[0].lower())
    return PublicModule(
        name,
        _own_doc(found),
        tuple(_public(name, key, each, getattr(runtime, key)) for key, each in exported),
    )


def target_of(found: Any) -> Any:
    """Return the definition behind an imported name."""
    target = found.final_target if found.is_alias else found
    # A package may export a function that has the name of its module: documents.html.html.
    return target.members[target.name] if target.is_module else target


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
            is_internal = key.startswith("_") or f"{module}.{name}.{key}" in INTERNAL
            if not is_internal and key not in members:
                members[key] = (target_of(each), holder)
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
        () if f"{module}.{name}" in RECEIVED else _constructor(name, found, own),
        _class_doc(found),
        bases,
        tuple(fields),
        tuple(methods),
    )


def _class_doc(found: Any) -> str:
    """The docstring of a class, and that of its constructor."""
    made = found.members.get("__init__")
    docs = (_own_doc(found), "" if made is None else _own_doc(target_of(made)))
    return "\n\n".join(doc for doc in docs if doc)


def _constructor(name: str, found: Any, ancestors: list[Any]) -> tuple[str, ...]:
    """How a class is called; nothing if it is not made for that."""
    is_protocol = any(str(base).startswith("Protocol") for base in found.bases)
    for holder in [found, *ancestors]:
        made = holder.members.get("__init__")
        if made is not None and not is_protocol:
            return tuple(
                re.sub(r"\) -> None$", ")", each.replace("__init__", name, 1))
                for each in _signatures(target_of(made))
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
        signature = _tidy(str(_unquoted(inspect.signature(made))))
        is_async = inspect.iscoroutinefunction(made)
        kind = "async method" if is_async else "method"
        return Member(key, kind, (key + signature,), inspect.getdoc(made) or "", owner)
    default = None if each.value is None else str(each.value)
    return Member(key, "attribute", (annotation,), _own_doc(each), owner, default)


@dataclass(frozen=True, slots=True)
class _Annotation:
    """An annotation that was written as text, shown without quotes."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _unquoted(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature whose annotations are shown as written. Defaults keep their quotes."""

    def shown(annotation: Any) -> Any:
        return _Annotation(annotation) if isinstance(annotation, str) else annotation

    return signature.replace(
        parameters=[
            each.replace(annotation=shown(each.annotation))
            for each in signature.parameters.values()
        ],
        return_annotation=shown(signature.return_annotation),
    )


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
        if each is not None and (doc := _own_doc(target_of(each))):
            return doc
    return ""
