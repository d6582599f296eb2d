"""The advice: which option to take, why, what being wrong would cost, and what is not used.

An option is acceptable if the worst scenario refuses no more than ``most_throttled`` of the units.
Of the acceptable ones the cheapest wins, by the middle of its range; if none is, the one that
refuses least. A target of which ``stator scale`` warns is shown and not recommended. What there is
now stays unless the winner saves at least five percent and a dollar, or unless provisioned units
refuse more than is acceptable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from stator.design.cost.prices import RegionPrices, Years
from stator.errors import ConfigurationError
from stator.model.quantities import amount, cents, plural
from stator.ops.capacity.bill import monthly_bill
from stator.ops.capacity.options import CapacityOption, FigureRange, OptionSearch, capacity_options
from stator.ops.capacity.policies import SCENARIOS, FixedPolicy, OnDemandPolicy, ScaledPolicy
from stator.ops.capacity.reason import reason, share_text, throttled_when
from stator.ops.capacity.replay import replay
from stator.ops.capacity.reserved import ReservedBlocks, reserved_blocks
from stator.ops.capacity.use_series import DAY_MINUTES, MINUTE, Dimension, TableHistory

LEAST_DAYS: Final = 1.0
"""Less history than this gives no advice: it has not seen a night and a day."""
WANTED_DAYS: Final = 14.0
_WORTH_SHARE: Final = 0.05
_WORTH_DOLLARS: Final = 1.0
_WRONG_FACTOR: Final = 2.0
_UNUSED_DAYS: Final = 7.0


@dataclass(frozen=True, slots=True)
class UnusedIndex:
    """An index that is written and never read, and what it costs a month."""

    index: str
    dollars: float


@dataclass(frozen=True, slots=True)
class PriceOfBeingWrong:
    """Cost and refusals of the chosen option and of on-demand with more traffic.

    The traffic is ``factor`` times that of the history. ``is_on_demand`` says that the option is
    on-demand itself, so that there is nothing to compare.
    """

    factor: float
    dollars: float
    throttled_share: float
    on_demand_dollars: float
    is_on_demand: bool = False

    def __str__(self) -> str:
        refused = share_text(self.throttled_share)
        said = (
            f"if traffic were {self.factor:g} times as high, it would cost ${cents(self.dollars)} "
            f"and refuse {refused}"
        )
        if self.is_on_demand:
            return said
        return f"{said}; on-demand would cost ${cents(self.on_demand_dollars)}"


@dataclass(frozen=True, slots=True)
class TableAdvice:
    """The options of one table, the recommended one, and the reason in a sentence."""

    history: TableHistory
    now: CapacityOption
    options: tuple[CapacityOption, ...]
    recommended: CapacityOption
    reason: str
    wrong: PriceOfBeingWrong
    unused: tuple[UnusedIndex, ...]
    notes: tuple[str, ...]

    @property
    def table(self) -> str:
        """The name of the table that the advice is about."""
        return self.history.table

    @property
    def saves(self) -> float:
        """The dollars that the recommended option saves a month, by the middle of its range."""
        return self.now.dollars.middle - self.recommended.dollars.middle

    @property
    def is_change(self) -> bool:
        """Whether the recommended option is another one than the present capacity."""
        return self.recommended is not self.now

    def note(self, option: CapacityOption, timezone: str) -> str:
        """Return what is worth saying about an option in a few words."""
        if option is self.recommended:
            if not self.is_change:
                return "<- keep"
            return self._what_changes()
        return throttled_when(self.history, option, timezone)

    def _what_changes(self) -> str:
        """Say what the change saves; if it costs more, whether it refuses less."""
        if self.saves > 0:
            return f"<- saves ${cents(self.saves)}"
        if self.recommended.throttled_share.high < self.now.throttled_share.high:
            return "<- refuses less"
        return f"<- costs ${cents(-self.saves)} more" if cents(-self.saves) != "0.00" else "<-"

    def to_data(self) -> dict[str, Any]:
        """Return the advice as JSON-ready data."""
        return {
            "table": self.table,
            "days": round(self.history.days, 3),
            "now": self.now.name,
            "recommended": self.recommended.name,
            "reason": self.reason,
            "saves": round(self.saves, 2),
            "if_wrong": {
                "factor": self.wrong.factor,
                "dollars": round(self.wrong.dollars, 2),
                "throttled_share": self.wrong.throttled_share,
                "on_demand_dollars": round(self.wrong.on_demand_dollars, 2),
            },
            "options": [_option_data(each) for each in self.options],
            "unused_indexes": [
                {"index": each.index, "dollars": round(each.dollars, 2)} for each in self.unused
            ],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class CapacityAdvice:
    """Advice on each table, and on reserved capacity for all of them together."""

    tables: tuple[TableAdvice, ...]
    reserved: tuple[ReservedBlocks, ...]
    prices: RegionPrices
    timezone: str

    def to_data(self) -> dict[str, Any]:
        """Return the advice as JSON-ready data."""
        return {
            "region": self.prices.region,
            "prices_as_of": self.prices.as_of.isoformat(),
            "timezone": self.timezone,
            "tables": [each.to_data() for each in self.tables],
            "reserved": [
                {
                    "kind": each.kind,
                    "blocks": each.blocks,
                    "years": each.years,
                    "upfront": each.upfront,
                    "saves": round(each.saves, 2),
                    "pays_after_months": round(each.pays_after_months, 1),
                    "break_even_share": round(each.break_even_share, 4),
                }
                for each in self.reserved
            ],
        }


def advise(
    searches: Sequence[OptionSearch],
    *,
    years: Years = 1,
    option: str | None = None,
    progress: Callable[[float, str], None] = lambda share, table: None,
) -> CapacityAdvice:
    """Return advice on tables whose prices are those of one region.

    ``option`` names the option to take instead of the recommended one. Raises ConfigurationError
    if a table has less than a day of history, or no option of that name.
    """
    for search in searches:
        _check_enough(search.history)
    found = []
    for number, search in enumerate(searches):
        found.append(_advise_table(_with_progress(search, number, len(searches), progress), option))
    first = searches[0]
    reserved = reserved_blocks(
        [
            (each.history, each.recommended.replays[0])
            for each in found
            if each.recommended.is_provisioned and each.recommended.table_class == "standard"
        ],
        first.prices,
        years,
    )
    return CapacityAdvice(tuple(found), reserved, first.prices, first.timezone)


def _with_progress(
    search: OptionSearch, number: int, count: int, progress: Callable[[float, str], None]
) -> OptionSearch:
    table = search.history.table
    return replace(search, progress=lambda share: progress((number + share) / count, table))


def _check_enough(history: TableHistory) -> None:
    if history.days < LEAST_DAYS:
        raise ConfigurationError(
            f"{history.table} has {history_length(history)} of history; at least a day is needed",
            hint=f"wait until there are {WANTED_DAYS:g} days, or pass a longer --history",
        )


def _advise_table(search: OptionSearch, name: str | None) -> TableAdvice:
    options = capacity_options(search)
    now, notes = options[0], _notes(search)
    if name is None:
        chosen = _recommended(options, search.most_throttled)
        why = reason(search, now, chosen, options)
    else:
        chosen, why = _named(search.history.table, options, name), "You chose it with --option."
        notes += [chosen.warning] if chosen.warning else []
    return TableAdvice(
        search.history,
        now,
        tuple(options),
        chosen,
        why,
        _if_wrong(search, chosen),
        tuple(_unused(search.history, now)),
        tuple(notes),
    )


def _named(table: str, options: Sequence[CapacityOption], name: str) -> CapacityOption:
    for each in options:
        if each.name == name:
            return each
    raise ConfigurationError(
        f"{table} has no option {name!r}",
        hint=f"it has {', '.join(repr(each.name) for each in options)}",
    )


def _recommended(options: Sequence[CapacityOption], most_throttled: float) -> CapacityOption:
    now = options[0]
    eligible = [each for each in options if each.is_eligible]
    # What on-demand refused, it refused for hot keys or a maximum: no other capacity cures that.
    refuses = now.is_provisioned and now.throttled_share.low > most_throttled
    able = [
        each
        for each in eligible
        if each.throttled_share.high <= most_throttled
        or (each.kind == "now" and not each.is_provisioned)
    ]
    if not able:
        least = min(each.throttled_share.high for each in eligible)
        able = [each for each in eligible if each.throttled_share.high == least]
    best = min(able, key=lambda each: each.dollars.middle)
    saves = now.dollars.middle - best.dollars.middle
    is_worth = saves >= max(_WORTH_DOLLARS, _WORTH_SHARE * now.dollars.middle)
    return best if is_worth or refuses else now


def _if_wrong(search: OptionSearch, chosen: CapacityOption) -> PriceOfBeingWrong:
    """Replay the chosen option, and on-demand, with twice the traffic in the worst scenario."""
    history, factor = search.history, _WRONG_FACTOR
    on_demand = dict.fromkeys(search.dimensions, OnDemandPolicy())
    fallback = _as_policies(search) if not chosen.policies else chosen.policies
    doubled = replay(history, fallback, SCENARIOS[1], factor=factor, warm=search.least_warm)
    other = replay(history, on_demand, SCENARIOS[1], factor=factor, warm=search.least_warm)
    bill = monthly_bill(history, doubled, search.prices, chosen.table_class)
    other_bill = monthly_bill(history, other, search.prices, chosen.table_class)
    is_on_demand = fallback == on_demand
    return PriceOfBeingWrong(
        factor, bill.total, doubled.throttled_share, other_bill.total, is_on_demand
    )


def _as_policies(search: OptionSearch) -> dict[Dimension, Any]:
    """Return the present capacity as a policy for each dimension: on-demand, or fixed units."""
    if not search.history.was_provisioned:
        return dict.fromkeys(search.dimensions, OnDemandPolicy())
    return {
        each.dimension: FixedPolicy(max(1, round(each.provisioned[-1])))
        for each in search.history.series
    }


def _unused(history: TableHistory, now: CapacityOption) -> list[UnusedIndex]:
    if history.days < _UNUSED_DAYS:
        return []
    found = []
    costs = now.bills[0].throughput
    for index in history.indexes:
        reads, writes = Dimension(index, "read"), Dimension(index, "write")
        if any(history.of(reads).consumed) or not any(history.of(writes).consumed):
            continue
        share = history.sizes.get(index, 0.0) / history.size_bytes if history.size_bytes else 0.0
        stored = now.bills[0].storage * share
        found.append(UnusedIndex(index, costs[str(reads)] + costs[str(writes)] + stored))
    return found


def _notes(search: OptionSearch) -> list[str]:
    history, notes = search.history, []
    if search.was_otherwise:
        modes = ("on-demand", "provisioned")
        there, was = modes[not history.was_provisioned], modes[history.was_provisioned]
        notes.append(
            f"{history.table} is {there} now and {was} in the history: the first row, and what "
            "the others save, are those of the history"
        )
    if history.days < WANTED_DAYS:
        notes.append(
            f"{history_length(history)} of history is little: {WANTED_DAYS:g} days show every "
            "weekday twice, so take the figures as a first estimate"
        )
    if history.source_seconds > MINUTE:
        notes.append(
            f"the history has a point for every {history.source_seconds // MINUTE} minutes: "
            "shorter peaks do not show, and throttling may be higher"
        )
    hidden = sum(each.hidden_units for each in history.series if each.dimension.is_front)
    if hidden:
        notes.append(
            f"throttled requests hid at least {amount(hidden)} units of demand, which are added"
        )
    if hidden and not history.was_provisioned:
        notes.append(
            "on-demand capacity refuses requests for hot keys, a maximum, or a sudden doubling: "
            "look for hot keys (stator simulate), other capacity does not cure them"
        )
    if "read_request_unit" in search.prices.doubtful:
        notes.append(f"no AWS source confirms the prices of {search.prices.region}")
    return notes


def history_length(history: TableHistory) -> str:
    """Return the length of a history in words: ``13 days 4 h``."""
    if history.minutes < DAY_MINUTES:
        hours, minutes = divmod(history.minutes, 60)
        return f"{hours} h {minutes} min" if hours else plural(minutes, "minute")
    days, rest = divmod(history.minutes, DAY_MINUTES)
    return plural(days, "day") + (f" {rest // 60} h" if rest >= 60 else "")


def _option_data(option: CapacityOption) -> dict[str, Any]:
    return {
        "name": option.name,
        "kind": option.kind,
        "table_class": option.table_class,
        "dollars": _range_data(option.dollars, 2),
        "throttled_units": _range_data(option.throttled_units, 3),
        "throttled_share": _range_data(option.throttled_share, 8),
        "warning": option.warning,
        "throttled_minutes": _range_data(option.throttled_minutes, 0),
        "longest_run_minutes": option.longest_run,
        "policies": {
            str(dimension): policy_data(policy) for dimension, policy in option.policies.items()
        },
    }


def policy_data(policy: object) -> dict[str, Any]:
    """Return a policy as JSON-ready data."""
    if isinstance(policy, ScaledPolicy):
        return {
            "target": policy.tracking.target_percent,
            "least": policy.bounds.least,
            "most": policy.bounds.most,
            "schedule": [
                {"at": each.schedule, "least": each.least, "timezone": each.timezone}
                for each in policy.actions
            ],
        }
    if isinstance(policy, OnDemandPolicy):
        return {"on_demand": True, "maximum": policy.maximum}
    return {"units": getattr(policy, "units", None)}


def _range_data(found: FigureRange, digits: int) -> list[float]:
    return [round(found.low, digits), round(found.high, digits)]
