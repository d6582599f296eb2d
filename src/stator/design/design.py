"""A design: entities and access patterns, with the methods that plan, price and check them.

    shop = Design("shop", [User, Order], [orders_of_user], volumes={Order: per(User, 12)})
    print(shop.plan().pattern("orders_of_user").key_condition)

``Design`` is the façade of this package: ``Declaration`` holds the data, and each method calls the
package that does the work. A method imports that package only when it is called. A program that
only reads and writes items by a lock file needs neither the planner nor the lint rules, and loading
them takes about as long as the rest of the package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from stator.design.declaration import Declaration, Layout, Per, per
from stator.design.entities.entity import Entity
from stator.design.patterns.pattern import Pattern, WritePattern
from stator.design.plan.plan import Plan
from stator.design.table_settings import TableSettings
from stator.design.value_facts import Fact

if TYPE_CHECKING:  # nothing below imports this module; see the note on imports above
    from stator.design.cost.report import CostOptions, CostReport
    from stator.design.lint.finding import Report

__all__ = ["Design", "Layout", "Per", "per"]


class Design(Declaration):
    """The entities a system stores and the patterns it reads and writes them by.

    Keys, indexes, requests and costs are derived from it. ``facts`` says what is known about
    values: ``[distinct(Order.status, values=5), share(Ride.status == "open", 0.001)]``. ``names``
    renames tables, indexes and key attributes: ``{"PK": "pk", "GSI1": "by_email"}``. With ``_type``
    it renames the attribute that names an item's entity, in one table with ``orders/_type``; with
    an empty name, items have no such attribute, and their keys tell entities apart. ``ignore``
    silences findings of ``check``: ``["ST304"]`` silences a code, ``["ST304:Post.likes"]`` one
    finding. ``settings`` are those of the tables: recovery, protection, streams, capacity.
    """

    def __init__(
        self,
        name: str,
        entities: Iterable[type[Entity]],
        patterns: Iterable[Pattern[..., Any] | WritePattern] = (),
        *,
        volumes: Mapping[type[Entity], float | Per] | None = None,
        writes: Mapping[type[Entity], float] | None = None,
        sizes: Mapping[type[Entity], int] | None = None,
        facts: Iterable[Fact] = (),
        layout: Layout = "single-table",
        names: Mapping[str, str] | None = None,
        ignore: Iterable[str] = (),
        settings: TableSettings | None = None,
    ) -> None:
        super().__init__(
            name,
            entities,
            patterns,
            volumes=volumes,
            writes=writes,
            sizes=sizes,
            facts=facts,
            layout=layout,
            names=names,
            ignore=ignore,
            settings=settings,
        )
        for pattern in self.reads:
            pattern.design = self

    def keep_to(self, lock: Plan | None) -> None:
        """Set the earlier plan, usually from a lock file, that ``plan`` starts from by default.

        With None, ``plan`` starts from scratch.
        """
        self.lock = lock

    def plan(self, previous: Plan | None = None, *, rekey: Iterable[str] = ()) -> Plan:
        """Return the cheapest layout that serves every pattern: its keys, indexes and requests.

        ``previous`` is the plan that existing data was written under, as ``read_lock`` returns it.
        The default is the plan passed to ``keep_to``. The new plan keeps the base keys of
        ``previous``, except for the entities named in ``rekey``. If such an entity gets another
        base key, its stored items must be moved. ``stator.design.planner.locked_choices`` lists
        the rules.
        """
        from stator.design.planner.planner import plan

        return plan(self, previous, rekey)

    def cost(self, **options: Unpack[CostOptions]) -> CostReport:
        """Return the monthly cost: ``shop.cost(region="eu-west-1", mode="provisioned")``."""
        from stator.design.cost.report import cost

        return cost(self, **options)

    def check(self, lock: Plan | None = None, *, at_least: float | None = None) -> Report:
        """Find problems in this design.

        ``lock`` is the plan in a lock file. If it is passed, planning starts from it, and the
        report also says how the new plan differs from it. Findings about money that cost less than
        ``at_least`` dollars a month, by default 5, are not reported.
        """
        from stator.design.lint.check import AT_LEAST_DOLLARS, check

        return check(self, lock, at_least=AT_LEAST_DOLLARS if at_least is None else at_least)
