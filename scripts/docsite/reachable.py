"""Every class that a public signature names has a page, or an entry on the page of passed values.

A program that calls public functions meets the classes of their results and parameters. Most are
public names. Some are only handed from one public call to another, such as what ``attr(...)``
returns: nobody needs their attributes. ``PASSED_ON`` lists these, and ``passed_on_page`` shows them
on one page with what they are for.
"""

from __future__ import annotations

from typing import Any, Final

import griffe

from docsite.docstrings import summary
from docsite.public_api import (
    PUBLIC_MODULES,
    loaded,
    says_something,
    shown_members,
    target_of,
)

PASSED_ON: Final = (
    # what designs are made of
    "stator.design.patterns.daily_window.DailyWindow",
    "stator.design.declaration.Declaration",
    "stator.design.declaration.Per",
    "stator.design.entities.conditions.Attribute",
    "stator.design.entities.conditions.Condition",
    "stator.design.entities.derived_parts.TextPart",
    "stator.design.entities.derived_parts.TimePart",
    "stator.design.entities.packed_numbers.Packing",
    "stator.design.entities.storable.MsgspecStruct",
    "stator.design.entities.storable.PydanticModel",
    "stator.design.patterns.write_pattern.DeclaredWrite",
    "stator.design.patterns.ask.DescendingField",
    "stator.design.patterns.pattern.Pattern",
    "stator.design.patterns.query.PlanSource",
    "stator.design.patterns.query.Question",
    "stator.design.patterns.query.Selection",
    "stator.design.patterns.write_pattern.WritePattern",
    "stator.design.value_facts.DistinctFact",
    "stator.design.value_facts.LargestFact",
    "stator.design.value_facts.MovingFact",
    "stator.design.value_facts.ShareFact",
    # parts of plans, documents and prices, which tools read
    "stator.design.cost.prices.PriceFile",
    "stator.design.cost.prices.RegionPrices",
    "stator.design.documents.diagram.Diagram",
    "stator.design.documents.document.EntityEntry",
    "stator.design.documents.document.PatternEntry",
    "stator.design.documents.document.TableEntry",
    "stator.design.export.source.Scaled",
    "stator.design.plan.demand.Demand",
    "stator.design.infer.fields.GuessedField",
    "stator.design.infer.table_keys.TableKeys",
    "stator.design.plan.plan.Step",
    "stator.design.plan.stored_shape.StoredField",
    "stator.design.plan.stored_shape.VersionedShape",
    "stator.design.plan.templates.PlannedKeyAttribute",
    "stator.design.plan.usage.StoredItems",
    "stator.design.plan.usage.UnitUse",
    "stator.design.simulation.call_shapes.CallShapes",
    "stator.design.simulation.flows.Flow",
    # what connections, engines and jobs are configured with
    "stator.addresses.TransportOptions",
    "stator.backoff.Backoff",
    "stator.clock.Clock",
    "stator.engine.recovery.objects.ObjectStore",
    "stator.model.heat.splits.PartitionEvent",
    "stator.model.companion_service.CompanionService",
    "stator.model.scaling.decrease_budget.DecreaseRecord",
    "stator.model.scope.Scope",
    "stator.transport.AsyncTransport",
    "stator.transport.CallOptions",
    "stator.transport.Transport",
    # work of your own
    "stator.tables.context.Context",
    "stator.tables.work.BlockingCall",
    "stator.tables.work.Call",
    "stator.tables.work.Gather",
    "stator.tables.work.Pages",
    "stator.tables.work.Pause",
    "stator.tables.writes.open_update.OpenUpdate",
    "stator.tables.writes.statements.Statement",
    # what observers and finders of hot keys are given
    "stator.tables.shards.contributor_insights.InsightsCloudWatch",
    "stator.tables.shards.contributor_insights.InsightsDynamoDB",
    "stator.tables.metrics.call_facts.FactReader",
    "stator.tables.metrics.metrics_observer.CallSink",
    "stator.throttle_reason.ThrottleReason",
    # between pattern objects and their items
    "stator.patterns.item_pages.ItemPages",
    "stator.patterns.once.AttemptBlock",
    "stator.patterns.outbox.outbox.ParkedMessages",
    "stator.patterns.rollups.rollup.RollupKey",
    "stator.patterns.rollups.stream_changes.RollupDifference",
    "stator.patterns.series.buckets.BucketShards",
    "stator.patterns.tree.tree.Descent",
    # between handlers, views, sinks and workers
    "stator.pipeline.ingest.routes.route.DeclaredRoute",
    "stator.pipeline.views.metrics.Additive",
    "stator.pipeline.views.metrics.Ordered",
    "stator.pipeline.views.projection.ProjectionPages",
    "stator.pipeline.views.updater.MaintainedView",
    "stator.pipeline.workers.handlers.change.Record",
    "stator.pipeline.workers.handlers.change_handlers.ChangeHandler",
    "stator.pipeline.workers.handlers.subscribers.HandlerFailure",
    "stator.pipeline.workers.handlers.subscribers.HandlerScope",
    "stator.pipeline.workers.handlers.subscribers.Subscriber",
)
PAGE: Final = "reference/python/passed-on.md"


def without_page() -> dict[str, list[str]]:
    """Return the classes that have neither a page nor an entry, and where each is named."""
    return {path: where for path, where in _named().items() if path not in PASSED_ON}


def not_passed_on() -> list[str]:
    """Return the entries of ``PASSED_ON`` that no public signature names any more."""
    return [path for path in PASSED_ON if path not in _named()]


def passed_on_page() -> str:
    """Return the page of the classes in ``PASSED_ON``: what each is, and where it occurs."""
    named = _named()
    lines = [
        "# Values that you pass on",
        "",
        "Objects of these classes come from one public call and go into another. You need no",
        "attribute of theirs and make none yourself. Import a class only to annotate, from the",
        "module shown; that module is not public otherwise.",
        "",
        "| Class | What it is | Where it occurs |",
        "|---|---|---|",
    ]
    for path in sorted(PASSED_ON, key=lambda path: path.rpartition(".")[2]):
        module, _, name = path.rpartition(".")
        where = ", ".join(f"`{each}`" for each in named[path][:3])
        text = summary(_doc(path), lambda _: None).replace("|", "\\|")
        lines.append(f"| `{name}`<br>`{module}` | {text} | {where} |")
    return "\n".join(lines) + "\n"


def explained(path: str) -> bool:
    """Whether the docstring of a class says more than its name."""
    return says_something(path.rpartition(".")[2], _doc(path))


def _doc(path: str) -> str:
    found = _resolved(path)
    return str(found.docstring.value) if found.docstring else ""


def _named() -> dict[str, list[str]]:
    """Return the classes that signatures of public names mention and that are not public."""
    walk = _Walk()
    for module in PUBLIC_MODULES:
        for name, found in loaded(module):
            walk.public.add(found.path)
            walk.waiting.append((f"{module}.{name}", found))
    for where, found in walk.waiting:
        walk.visit(where, found)
    unknown = {path: where for path, where in walk.named.items() if path not in walk.public}
    return {path: list(dict.fromkeys(where)) for path, where in sorted(unknown.items())}


class _Walk:
    """Collects the classes that annotations name."""

    def __init__(self) -> None:
        self.public: set[str] = set()
        self.waiting: list[tuple[str, Any]] = []
        self.named: dict[str, list[str]] = {}
        self._aliases: set[str] = set()

    def visit(self, where: str, found: Any) -> None:
        if found.is_function:
            self._function(where, found)
        elif found.is_class:
            for name, member in shown_members(where, found):
                if member.is_function:
                    self._function(f"{where}.{name}", member)
                elif member.is_attribute:
                    self._annotation(f"{where}.{name}", member.annotation)
                    if "DbOperations." in str(member.value):  # a method of Db
                        operations = _resolved("stator.tables.db_operations.DbOperations")
                        self._function(f"{where}.{name}", operations.all_members[name])

    def _function(self, where: str, found: Any) -> None:
        for each in found.overloads or [found]:
            self._annotation(where, each.returns)
            for parameter in each.parameters:
                self._annotation(where, parameter.annotation)

    def _annotation(self, where: str, annotation: Any) -> None:
        if not isinstance(annotation, griffe.Expr):
            return
        for part in annotation.iterate(flat=True):
            if isinstance(part, griffe.ExprName):
                found = _resolved(part.canonical_path)
                if found is not None and found.is_class:
                    self.named.setdefault(found.path, []).append(where)
                elif found is not None and found.is_attribute and found.path not in self._aliases:
                    self._aliases.add(found.path)
                    self._annotation(where, found.value)


def _resolved(path: str) -> Any:
    """Return what a path of Stator's names, or None for a path of another library."""
    package = next(iter(loaded("stator")))[1].package
    try:
        return target_of(package[path.removeprefix("stator.")]) if "stator." in path else None
    except (KeyError, griffe.AliasResolutionError):
        return None
