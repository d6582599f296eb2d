"""The monthly cost of a design: by pattern, entity and index, with storage, streams and backups.

Quantities come from ``workload``, prices from the dated file in ``prices``, arithmetic from
``charges``. The result is a flat list of lines, each for one pattern, one entity and one place.
Every breakdown of a report, such as by pattern or by place, only sums these lines, so the parts add
up to the whole. To keep that exact, a line is rounded once, to a billionth of a dollar.

- **on-demand**: each unit has its price.
- **provisioned**: each table and each global index has its own capacity, a whole number and at
  least 1. ``utilisation`` leaves headroom: with 0.7, the load uses seven tenths of the capacity.
  Patterns share the price of the capacity in proportion to the units they use.
- **reserved**: the same capacity. Whole blocks of 100 units of all tables together are reserved for
  ``years``.

A write pays for the table and for each index that has an entry for the item. A change to an index's
key deletes one entry and inserts another, and pays for both. Guards of unique fields are written
in a transaction with their item, which doubles the units of both. The cost of a stream is the cost
of reading it: a consumer polls each shard once a second (Lambda and global tables read free of
charge). PITR and backups cover tables and their local indexes. The free tier, taxes and data
transfer are not included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final, Literal, TypedDict, Unpack, get_args

from stator.design.cost import charges
from stator.design.cost.charges import Charge, TableClass, a_month, total
from stator.design.cost.prices import PriceFile, PriceName, RegionPrices, Years, price_file
from stator.design.cost.prices.price_list import list_address
from stator.design.cost.workload import CapacityUse, StoredData, Workload, workload_of
from stator.design.declaration import Declaration
from stator.design.plan.html_table import html_table
from stator.design.plan.plan import Plan
from stator.design.planner.planner import plan as plan_of
from stator.design.table_settings import TableSettings
from stator.errors import DesignError
from stator.model.quantities import cents
from stator.model.scaling.target_tracking import USUAL_TARGET_PERCENT

Mode = Literal["on-demand", "provisioned", "reserved"]
Kind = Literal["reads", "writes", "storage", "streams", "backups"]

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
IDLE: Final = "(idle capacity)"
DEFAULT_REGION: Final = "us-east-1"
"""The region of prices if none is named, and the one by which the planner ranks layouts."""
_NANO: Final = Decimal("1e-9")
_PARTITION_BYTES: Final = 10 * 1024**3
_PARTITION_WRITES: Final = 1000


class CostOptions(TypedDict, total=False):
    """The keyword arguments of ``cost``. An omitted option takes the default of ``Basis``."""

    region: str
    mode: Mode
    utilisation: float
    years: Years
    table_class: TableClass
    pitr: bool
    backups: float
    stream_consumers: int


@dataclass(frozen=True, slots=True)
class Basis:
    """The options that a report was computed with: region, billing mode, table class and so on.

    ``backups`` is the number of full backups kept. ``stream_consumers`` is the number of consumers
    that poll the stream. Raises DesignError for an impossible option.
    """

    region: str = DEFAULT_REGION
    mode: Mode = "on-demand"
    utilisation: float = USUAL_TARGET_PERCENT / 100
    years: Years = 1
    table_class: TableClass = "standard"
    pitr: bool = False
    backups: float = 0.0
    stream_consumers: int = 0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise DesignError(
                f"billing mode {self.mode!r} is not supported",
                hint=f"use one of {', '.join(MODES)}",
            )
        if not 0 < self.utilisation <= 1:
            raise DesignError(
                f"utilisation={self.utilisation:g} must be greater than 0 and at most 1",
                hint="use the share of capacity that is used, for example 0.7",
            )
        if self.backups < 0 or self.stream_consumers < 0:
            raise DesignError(
                f"backups={self.backups:g} and stream_consumers={self.stream_consumers} must not "
                f"be negative",
                hint="use 0 or more",
            )
        if self.mode == "reserved" and self.table_class != "standard":
            raise DesignError(
                "only the Standard table class can be reserved", hint="use mode provisioned"
            )

    def __str__(self) -> str:
        years = "years" if self.years > 1 else "year"
        how = {
            "on-demand": "on-demand",
            "provisioned": f"provisioned at {self.utilisation:.0%} utilisation",
            "reserved": f"reserved for {self.years} {years}, {self.utilisation:.0%} utilisation",
        }
        infrequent = self.table_class == "infrequent_access"
        found = how[self.mode] + (", Standard-Infrequent Access" if infrequent else "")
        return found + (", with point-in-time recovery" if self.pitr else "")


@dataclass(frozen=True, slots=True)
class CostLine:
    """One line of the bill: one kind of cost of one pattern and entity, in one table or index.

    ``quantity`` is the number of ``unit``s in a month. ``by`` names the fields of an index key.
    """

    kind: Kind
    pattern: str | None
    entity: str
    table: str
    index: str | None
    quantity: Decimal
    unit: str
    dollars: Decimal
    by: str = ""


@dataclass(frozen=True, slots=True)
class CostReport:
    """The monthly cost of a design: one line for each use of capacity or storage."""

    design: str
    basis: Basis
    prices_as_of: str
    lines: tuple[CostLine, ...]
    doubtful: tuple[str, ...] = field(default=())
    """The names of prices in this report that come from memory and have no source."""
    not_included: tuple[str, ...] = field(default=())
    """What the region has no price for, as sentences."""

    def _repr_html_(self) -> str:
        """Return the bill by pattern for a notebook."""
        parts = self.by_pattern()
        shares = (f"{dollars / self.total:.0%}" if self.total else "" for dollars in parts.values())
        return html_table(
            f"{self.design}: ${cents(self.total)} a month, {self.basis}, {self.basis.region}, "
            f"prices of {self.prices_as_of}",
            ("pattern", "dollars a month", "share"),
            (
                (name, cents(dollars), share)
                for (name, dollars), share in zip(parts.items(), shares)
            ),
        )

    @property
    def total(self) -> Decimal:
        """The sum of all lines, in dollars a month."""
        return sum((line.dollars for line in self.lines), Decimal(0))

    def by(self, key: Callable[[CostLine], str]) -> dict[str, Decimal]:
        """Return the dollars for each value of ``key``, largest first."""
        found: dict[str, Decimal] = {}
        for line in self.lines:
            found[key(line)] = found.get(key(line), Decimal(0)) + line.dollars
        return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))

    def by_kind(self) -> dict[str, Decimal]:
        """Return the dollars for reads, writes, storage, streams and backups."""
        return self.by(lambda line: line.kind)

    def by_pattern(self) -> dict[str, Decimal]:
        """Return the dollars by pattern. The cost of a write includes its writes to indexes.

        Costs without a pattern are listed by their kind in brackets, such as ``(storage)``.
        """
        return self.by(
            lambda line: line.pattern or (IDLE if line.entity == IDLE else f"({line.kind})")
        )

    def by_entity(self) -> dict[str, Decimal]:
        """Return the dollars for each entity, the most expensive first."""
        return self.by(lambda line: line.entity)

    def by_place(self) -> dict[str, Decimal]:
        """Return the dollars by place: a table without its indexes, or one index.

        The names are ``shop`` and ``shop/GSI1``.
        """
        return self.by(place_of)

    def by_index(self) -> dict[str, Decimal]:
        """Return the dollars for writing and storing each index, as the plan shows them.

        Reads are left out: without the index, their patterns would read something else.
        """
        held = replace(self, lines=tuple(each for each in self.lines if each.kind != "reads"))
        return {name: dollars for name, dollars in held.by_place().items() if "/" in name}

    def to_data(self) -> dict[str, Any]:
        """Return plain data for JSON, with dollars as numbers."""
        groups = {
            "kinds": self.by_kind(),
            "patterns": self.by_pattern(),
            "entities": self.by_entity(),
            "places": self.by_place(),
        }
        return {
            "design": self.design,
            "region": self.basis.region,
            "mode": self.basis.mode,
            "utilisation": self.basis.utilisation if self.basis.mode != "on-demand" else None,
            "prices_as_of": self.prices_as_of,
            "doubtful_prices": list(self.doubtful),
            "not_included": list(self.not_included),
            "dollars_per_month": float(self.total),
            **{
                name: {each: float(dollars) for each, dollars in group.items()}
                for name, group in groups.items()
            },
            "lines": [
                {
                    "kind": line.kind,
                    "pattern": line.pattern,
                    "entity": line.entity,
                    "table": line.table,
                    "index": line.index,
                    "quantity_per_month": float(line.quantity),
                    "unit": line.unit,
                    "dollars_per_month": float(line.dollars),
                }
                for line in self.lines
            ],
        }


def place_of(line: CostLine) -> str:
    return line.table if line.index is None else f"{line.table}/{line.index}"


def cost(
    subject: Declaration | Plan,
    *,
    facts: Declaration | None = None,
    known: PriceFile | None = None,
    **options: Unpack[CostOptions],
) -> CostReport:
    """Return the monthly cost of a design or of a plan.

    Omitted options follow the settings of the design, then the defaults of ``Basis``. ``known``
    replaces the prices that come with Stator. A plan from an old lock file stores no workload;
    ``facts`` is then the design whose workload is used.
    """
    design = facts if isinstance(subject, Plan) else subject
    chosen = settings_options(design)
    chosen.update(options)
    basis = Basis(**chosen)
    plan = subject if isinstance(subject, Plan) else plan_of(subject)
    workload = workload_of(plan, facts if isinstance(subject, Plan) else subject)
    return report(plan.name, workload, basis, (known or price_file()).region(basis.region))


def settings_options(design: Declaration | None) -> CostOptions:
    """Return the cost options that follow from a design's ``settings``.

    The options are the table class, point-in-time recovery (on by default), and provisioned
    capacity with its utilisation. Without a design, nothing is known about its tables.
    """
    found: CostOptions = {}
    if design is None:
        return found
    settings = design.settings or TableSettings()
    if settings.table_class == "STANDARD_INFREQUENT_ACCESS":
        found["table_class"] = "infrequent_access"
    if settings.recovers:
        found["pitr"] = True
    if settings.capacity is not None:
        found["mode"], found["utilisation"] = "provisioned", settings.capacity.target
    return found


def report(name: str, workload: Workload, basis: Basis, region: RegionPrices) -> CostReport:
    bill = _Bill(workload, basis, region)
    lines = (*bill.requests(), *bill.storage(), *bill.streams(), *bill.backups())
    doubtful = tuple(sorted(bill.used & region.doubtful))
    as_of = region.as_of.isoformat()
    return CostReport(name, basis, as_of, lines, doubtful, tuple(bill.not_included))


class _Bill:
    """The lines of one month's bill, and in ``used`` the names of the prices that they use."""

    def __init__(self, workload: Workload, basis: Basis, region: RegionPrices) -> None:
        self.workload = workload
        self.basis = basis
        self.region = region
        self.used: set[str] = set()
        self.not_included: list[str] = []

    def _dollars(self, charges: Iterable[Charge]) -> Decimal:
        found = tuple(charges)
        self.used |= {charge.what for charge in found}
        return total(found)

    # -- reads and writes

    def requests(self) -> list[CostLine]:
        if self.basis.mode == "on-demand":
            return [_request_line(use, self._unit_dollars(use)) for use in self.workload.uses]
        found: list[CostLine] = []
        capacities = self._capacities()
        for kind in ("read", "write"):
            places = {
                (table, index): held
                for (each, table, index), held in capacities.items()
                if each == kind
            }
            shares = self._capacity_dollars(kind, list(places.values()))
            for place, dollars in zip(places, shares):
                found += self._shared_out(kind, place, dollars)
        return found

    def _unit_dollars(self, use: CapacityUse) -> Decimal:
        units = {f"{use.kind}_units": a_month(use.units)}
        return self._dollars(
            charges.on_demand(self.region, table_class=self.basis.table_class, **units)
        )

    def _capacities(self) -> dict[tuple[str, str, str | None], Decimal]:
        """Return the read and write capacity to provision for each table and global index.

        A key of the result is ("read" or "write", table, index), with None as the index for the
        table itself. What a local index uses is counted for its table.
        """
        local = {(stored.table, stored.index) for stored in self.workload.stored if stored.is_local}
        units: dict[tuple[str, str, str | None], Decimal] = {}
        for stored in self.workload.stored:
            if not stored.is_local:
                for kind in ("read", "write"):
                    units.setdefault((kind, stored.table, stored.index), Decimal(0))
        for use in self.workload.uses:
            index = None if (use.table, use.index) in local else use.index
            key = (use.kind, use.table, index)
            units[key] = units.get(key, Decimal(0)) + use.units
        return {
            key: charges.capacity(each, utilisation=self.basis.utilisation)
            for key, each in units.items()
        }

    def _capacity_dollars(self, kind: str, held: list[Decimal]) -> list[Decimal]:
        """Return the monthly cost of each of the capacities in ``held``.

        Reserved blocks are bought for the sum of the capacities. Their cost is divided among the
        capacities.
        """
        if self.basis.mode == "reserved":
            whole = {f"{kind}_capacity": sum(held, Decimal(0))}
            dollars = self._dollars(charges.reserved(self.region, years=self.basis.years, **whole))
            return _shares(dollars, held)
        return [self._dollars(self._provisioned(kind, each)) for each in held]

    def _provisioned(self, kind: str, held: Decimal) -> tuple[Charge, ...]:
        read, write = (held, 0) if kind == "read" else (0, held)
        return charges.provisioned(
            self.region,
            read_capacity=read,
            write_capacity=write,
            table_class=self.basis.table_class,
        )

    def _shared_out(
        self, kind: str, place: tuple[str, str | None], dollars: Decimal
    ) -> list[CostLine]:
        table, index = place
        local = {
            stored.index
            for stored in self.workload.stored
            if stored.is_local and stored.table == table
        }
        users = [
            use
            for use in self.workload.uses
            if use.kind == kind
            and use.table == table
            and (None if use.index in local else use.index) == index
        ]
        if not users:
            noun: Kind = "reads" if kind == "read" else "writes"
            return [
                CostLine(
                    noun,
                    None,
                    IDLE,
                    table,
                    index,
                    Decimal(1),
                    "idle capacity units",
                    _rounded(dollars),
                )
            ]
        return [
            _request_line(use, each)
            for use, each in zip(users, _shares(dollars, [use.units for use in users]))
        ]

    # -- everything else

    def storage(self) -> list[CostLine]:
        return [
            _storage_line(
                "storage",
                stored,
                self._dollars(
                    charges.storage(self.region, size, table_class=self.basis.table_class)
                ),
            )
            for stored in self.workload.stored
            if (size := stored.stored_bytes)
        ]

    def streams(self) -> list[CostLine]:
        """Return the cost of polling: once a second for each consumer and shard.

        A stream has one shard for each partition of its table.
        """
        found: list[CostLine] = []
        has_price = self.basis.stream_consumers and self._has("stream_read", "stream reads")
        for table in (
            sorted({each.table for each in self.workload.stored if not each.is_guard})
            if has_price
            else ()
        ):
            reads = a_month(self._partitions(table) * self.basis.stream_consumers)
            dollars = _rounded(self._dollars(charges.streams(self.region, reads=reads)))
            found.append(
                CostLine("streams", None, "(all)", table, None, reads, "GetRecords calls", dollars)
            )
        return found

    def _partitions(self, table: str) -> int:
        size = sum(
            (
                stored.stored_bytes
                for stored in self.workload.stored
                if stored.table == table and not stored.index
            ),
            Decimal(0),
        )
        writes = sum(
            (
                use.units
                for use in self.workload.uses
                if (use.kind, use.table, use.index) == ("write", table, None)
            ),
            Decimal(0),
        )
        return max(1, -int(-size // _PARTITION_BYTES), -int(-writes // _PARTITION_WRITES))

    def _has(self, price: PriceName, what: str) -> bool:
        """Whether the region has a price. If not, the report notes that it leaves ``what`` out."""
        if price not in self.region:
            self.not_included.append(
                f"the price of {what} in {self.region.region} is missing, so the total is without "
                f"it; download {list_address(self.region.region)} and pass it: "
                "stator cost --prices index.json"
            )
        return price in self.region

    def backups(self) -> list[CostLine]:
        found: list[CostLine] = []
        pitr = self.basis.pitr and self._has("pitr_gb_month", "point-in-time recovery")
        backups = self.basis.backups and self._has("backup_gb_month", "backups")
        for stored in self.workload.stored:
            size = stored.stored_bytes
            is_global = stored.index is not None and not stored.is_local
            if is_global or stored.is_guard or not size:
                continue
            if pitr:
                found.append(
                    _storage_line(
                        "backups",
                        stored,
                        self._dollars(charges.backups(self.region, pitr_bytes=size)),
                    )
                )
            if backups:
                copies = size * Decimal(str(self.basis.backups))
                found.append(
                    _storage_line(
                        "backups",
                        stored,
                        self._dollars(charges.backups(self.region, backup_bytes=copies)),
                    )
                )
        return found


def _request_line(use: CapacityUse, dollars: Decimal) -> CostLine:
    noun: Kind = "reads" if use.kind == "read" else "writes"
    units = a_month(use.units)
    return CostLine(
        noun,
        use.pattern,
        use.entity,
        use.table,
        use.index,
        units,
        f"{use.kind} units",
        _rounded(dollars),
        use.by,
    )


def _storage_line(kind: Kind, stored: StoredData, dollars: Decimal) -> CostLine:
    size = stored.stored_bytes / charges.GB_BYTES
    return CostLine(
        kind,
        None,
        stored.entity,
        stored.table,
        stored.index,
        size,
        "GB",
        _rounded(dollars),
        stored.by,
    )


def _rounded(dollars: Decimal) -> Decimal:
    return dollars.quantize(_NANO, ROUND_HALF_EVEN)


def _shares(dollars: Decimal, weights: Sequence[Decimal]) -> list[Decimal]:
    """Divide dollars in proportion to the weights, and round each share.

    The share with the largest weight absorbs the rounding error.
    """
    whole, weight = _rounded(dollars), sum(weights, Decimal(0))
    found = [_rounded(whole * each / weight) for each in weights]
    found[weights.index(max(weights))] += whole - sum(found, Decimal(0))
    return found
