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
from stator.design.patterns.pattern import Pattern
from stator.design.patterns.write_pattern import WritePattern
from stator.design.plan.plan import Plan
from stator.design.table_settings import TableSettings
from stator.design.value_facts import Fact

if TYPE_CHECKING:  # nothing below imports this module; see the note on imports above
    from stator.design.cost.report import CostOptions, CostReport
    from stator.design.lint.finding import Report
    from stator.design.simulation import MeasuredTraffic, Simulation, TrafficShape

__all__ = ["Design", "Layout", "Per", "per"]


class Design(Declaration):
    """The entities a system stores and the patterns it reads and writes them by.

    Keys, indexes, requests and costs are derived from it.

    ``facts`` says what is known about values:
    ``[distinct(Order.status, values=5), share(Ride.status == "open", 0.001)]``.

    ``names`` renames tables, indexes and key attributes: ``{"PK": "pk", "GSI1": "by_email"}``. The
    name ``_type`` stands for the attribute that holds the name of an item's entity;
    ``orders/_type`` stands for this attribute in the table ``orders`` only. If the new name is
    empty, items have no such attribute, and entities are told apart by their keys.

    ``ignore`` silences findings of ``check``: ``["ST304"]`` silences a code, and
    ``["ST304:Post.likes"]`` silences one finding. ``settings`` sets recovery, protection, streams
    and capacity of the tables.
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
        """Set the earlier plan whose base keys ``plan()`` keeps, in place of the lock file's plan.

        With None, ``plan()`` ignores the lock file and chooses all keys anew.
        """
        self.lock = lock

    def plan(self, previous: Plan | None = None, *, rekey: Iterable[str] = ()) -> Plan:
        """Return the cheapest layout that serves every pattern: its keys, indexes and requests.

        ``previous`` is the plan that existing data was written under, as ``read_lock`` returns it.
        The default is the plan passed to ``keep_to``, or else the lock file next to the file that
        defines the design, if there is one. The new plan keeps the base keys of
        ``previous``, except for the entities named in ``rekey``. If such an entity gets another
        base key, its stored items must be moved. ``stator.design.planner.locked_choices`` lists
        the rules. Layouts are ranked by on-demand prices of us-east-1. The dollars of the result
        are those of ``cost()``: they follow ``settings``.
        """
        from stator.design.cost.billed_plan import billed_plan
        from stator.design.planner.planner import plan

        return billed_plan(plan(self, previous, rekey), self)

    def cost(self, **options: Unpack[CostOptions]) -> CostReport:
        """Return the monthly cost: ``shop.cost(region="eu-west-1", mode="provisioned")``."""
        from stator.design.cost.report import cost

        return cost(self, **options)

    def simulate(
        self,
        traffic: TrafficShape | None = None,
        *,
        measured: MeasuredTraffic | None = None,
    ) -> Simulation:
        """Simulate how partitions take the declared traffic, and where they throttle.

        ``shop.simulate().pattern("place")`` is the result for the pattern ``place``.
        ``traffic`` varies the declared rates: spikes, a launch, bulk loads, hot keys. ``measured``
        replaces these rates by measured traffic. Both types are in ``stator.design.simulation``.
        """
        from stator.design.simulation import simulate

        return simulate(self, traffic, plan=self.plan(), measured=measured)

    def check(self, lock: Plan | None = None, *, at_least: float | None = None) -> Report:
        """Find problems in this design.

        ``lock`` is the plan in a lock file. If it is passed, the new plan keeps its base keys, and
        the report also says how the new plan differs from it. Findings about money that cost less
        than ``at_least`` dollars a month, by default 5, are not reported.
        """
        from stator.design.lint.check import AT_LEAST_DOLLARS, check

        return check(self, lock, at_least=AT_LEAST_DOLLARS if at_least is None else at_least)
