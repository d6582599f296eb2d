"""How writes change the entries of an index: whether they insert, delete, move or rewrite one.

An index on a path holds an item if the item has the path's optional fields and its constants. So
the units of a write depend on the state of the item before and after it:

- *A create* leaves the declared state (``creates(Job, after=Job.status == "queued")``), or else the
  default of a field. If no update changes a field, new items have the same distribution of its
  values as stored items.
- *An update* goes from one declared state to another. Without a declaration, the flow decides: as
  many items leave a state as enter it. If new items are queued, and each is updated twice, then
  half of the updates take an item out of the queue. Without creates, a field is assumed to change
  to any of its other values.
- *A part of a field* (``day_of(seen_at)``) changes less often than the field. A fact says how often
  (``moving(day_of(Device.seen_at), 0.01)``). Otherwise a time is assumed to be the present one: a
  device seen once an hour changes its day once in 24 updates. A prefix of a text is assumed to
  change in half of the updates.

Each assumption is a guess, and the plan shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from stator.design.entities.conditions import Comparison, FieldRef
from stator.design.entities.derived_parts import derived_part, source_field
from stator.design.entities.entity import Entity, info
from stator.design.entities.shapes import Maybe
from stator.design.plan import key_text as keys
from stator.design.planner.distinct_values import Guess
from stator.design.planner.estimates import Estimates, named_values
from stator.design.planner.needs.need import Need, ValueSource, is_optional
from stator.design.planner.needs.write_rates import ItemWrite, WriteRates
from stator.design.planner.paths.access_path import AccessPath
from stator.design.planner.selectivity import fraction
from stator.design.value_facts import condition_text, shown_name

CHANGED_PREFIX: Final = 0.5
"""The assumed share of updates of a text that change a prefix of it."""
_PART_SECONDS: Final = {"year": 31_557_600, "month": 2_629_800, "day": 86_400, "hour": 3_600}


@dataclass(frozen=True, slots=True)
class EntryChanges:
    """The shares of updates that insert an entry, delete one, move one, or leave its key as it is.

    The shares may add up to less than 1: an update of an item that stays outside the index is in
    none.
    """

    enters: float
    leaves: float
    moves: float
    stays: float


@dataclass(frozen=True, slots=True)
class _Chances:
    """The chances that an item meets a condition of an index before a write, after it, and both."""

    before: float
    after: float
    both: float


@dataclass(frozen=True)
class ItemLife:
    """The writes of one entity, and what they mean for the state of its items."""

    entity: type[Entity]
    rates: WriteRates
    estimates: Estimates

    # -- creates, deletes and updates

    def created_share(self, path: AccessPath, write: ItemWrite) -> float:
        """Return the share of created items that an index on this path holds."""
        found = 1.0
        for name, source in path.constants:
            found *= self._created(name, source, write)
        for name in self._optional(path):
            found *= 1.0 - self._created(name, ValueSource(is_absent=True), write)
        return found

    def deleted_share(self, path: AccessPath, write: ItemWrite) -> float:
        """Return the share of deleted items that an index on this path holds."""
        found = 1.0
        for name, source in path.constants:
            known = _known(write.before, name, source)
            found *= self._stock(name, source) if known is None else known
        for name in self._optional(path):
            absent = _known(write.before, name, ValueSource(is_absent=True))
            found *= self.estimates.present(self.entity, name) if absent is None else 1.0 - absent
        return found

    def entry_changes(self, path: AccessPath, write: ItemWrite) -> EntryChanges:
        """Return which shares of updates insert, delete, move or keep an entry of an index."""
        before = after = both = 1.0
        for name, source in path.constants:
            found = self._constant_chances(name, source, write)
            before, after, both = before * found.before, after * found.after, both * found.both
        for name in self._optional(path):
            found = self._presence_chances(name, write)
            before, after, both = before * found.before, after * found.after, both * found.both
        moved = both * self._moved(path, write)
        return EntryChanges(after - both, before - both, moved, both - moved)

    def entry_writes(
        self,
        path: AccessPath,
        kinds: Collection[str] = ("create", "update", "delete"),
        included: frozenset[str] | None = None,
        rates: WriteRates | None = None,
    ) -> float:
        """Return how many entries of an index are written each second: its heat, in entries.

        An insert and a delete write one entry, a moved key two. The rate does not depend on how
        many items the index holds: a queue that is nearly always empty still gets an insert and a
        delete for each job. ``kinds`` are the kinds of writes that count. ``included`` has the
        fields that entries hold besides keys; None means all fields. ``rates`` has the writes of
        a busy moment, in place of the average.
        """
        total = 0.0
        for write in (rates or self.rates).writes:
            if write.kind not in kinds:
                continue
            if write.kind == "create":
                each = self.created_share(path, write)
            elif write.kind == "delete":
                each = self.deleted_share(path, write)
            else:
                found = self.entry_changes(path, write)
                rewritten = found.stays if included is None or write.fields & included else 0.0
                each = found.enters + found.leaves + 2 * found.moves + rewritten
            total += write.rate * each
        return total

    def _constant_chances(self, name: str, source: ValueSource, write: ItemWrite) -> _Chances:
        first = _known(write.before, name, source)
        last = _known(write.after, name, source)
        if source_field(name) not in write.fields:
            one = next((each for each in (first, last) if each is not None), None)
            share = self._stock(name, source) if one is None else one
            return _Chances(share, share, share)
        if first is None and last is None:
            enters, leaves = self._flow(name, source)
            return _Chances(leaves, enters, 0.0)
        if first is None:
            first = 0.0 if last else self._flow(name, source)[1]
        if last is None:
            last = 0.0 if first else self._flow(name, source)[0]
        return _Chances(first, last, first * last)

    def _presence_chances(self, name: str, write: ItemWrite) -> _Chances:
        absent = ValueSource(is_absent=True)
        first, last = _known(write.before, name, absent), _known(write.after, name, absent)
        held = self.estimates.present(self.entity, name)
        if name not in write.fields:
            one = next((each for each in (first, last) if each is not None), None)
            share = held if one is None else 1.0 - one
            return _Chances(share, share, share)
        if (first, last) == (None, None) and self._is_fed(name, absent):
            sets, clears = self._flow(name, absent)[::-1]
            return _Chances(1.0 - sets, 1.0 - clears, max(0.0, 1.0 - sets - clears))
        before = held if first is None else 1.0 - first
        if last is not None:
            return _Chances(before, 1.0 - last, before * (1.0 - last))
        # An absent value is set; a present one may also be removed.
        return _Chances(before, 1.0 - before + before * held, before * held)

    def _moved(self, path: AccessPath, write: ItemWrite) -> float:
        """Return the share of updates that move an index entry, as they change its key text."""
        stays = 1.0
        for name in dict.fromkeys((*path.partition, *path.sort)):
            if source_field(name) in write.fields:
                stays *= 1.0 - self.changed_share(name)
        return 1.0 - stays

    def changed_share(self, name: str) -> float:
        """Return the share of a field's updates that change ``name``: the field or a part of it.

        Every update changes the field itself. A fact, or the age of a time, decides how often a
        derived part such as ``day_of(seen_at)`` changes.
        """
        part = derived_part(name)
        if part is None:
            return 1.0
        declared = self.estimates.design.facts.moving(self.entity, name)
        if declared is not None:
            return declared
        if not part.is_time:
            return CHANGED_PREFIX
        each = self.update_rate(part.field) / self.estimates.volume(self.entity)
        return min(1.0, 1.0 / (each * _PART_SECONDS[part.part])) if each else 1.0

    def update_rate(self, field: str) -> float:
        """Return how many updates of a field there are each second."""
        return sum(rate for fields, rate in self.rates.updates if field in fields)

    # -- states

    def _optional(self, path: AccessPath) -> list[str]:
        known = info(self.entity)
        names = dict.fromkeys(map(source_field, (*path.partition, *path.sort)))
        return [name for name in names if is_optional(known, name)]

    def _stock(self, name: str, source: ValueSource) -> float:
        probe = Need("", self.entity, {name: source})
        return float(fraction(probe, (name,), self.estimates))

    def _created(self, name: str, source: ValueSource, write: ItemWrite) -> float:
        """Return the share of created items whose field has the value of ``source``.

        ``source`` may also say that the field is absent.
        """
        found = _known(write.after, name, source)
        if found is None and self.update_rate(source_field(name)) and derived_part(name) is None:
            found = self._default(name, source)
        return self._stock(name, source) if found is None else found

    def _default(self, name: str, source: ValueSource) -> float | None:
        """Return 1 if a field's default is this value, 0 if not.

        Returns None if the field has no default, or one that differs from item to item.
        """
        maker = info(self.entity).default_maker(name)
        if maker is None:
            return None
        try:
            value, again = maker(), maker()
        except Exception:  # a default of the user's own, which may need anything
            return None
        if keys.plain(value) != keys.plain(again):
            return None
        if source.is_absent:
            return float(value is None)
        return float(value is not None and keys.plain(value) == keys.plain(source.constant))

    def _flow(self, name: str, source: ValueSource) -> tuple[float, float]:
        """Return the shares of undeclared updates that give an item a value, and that take it away.

        An undeclared update changes the field, but declares neither the old nor the new value.
        """
        share, field = self._stock(name, source), source_field(name)
        values = None if derived_part(name) else named_values(info(self.entity).fields[field].shape)
        if source.is_absent:
            enters = share * (1.0 - share)
        else:
            enters = (1.0 - share) * (share if values is None else 1.0 / max(1, values - 1))
        open_rate = sum(each.rate for each in self._undeclared(name, source))
        if not self._is_fed(name, source) or not open_rate:
            return enters, share
        feed = self._feed(name, source) / open_rate
        if values == 2 and not isinstance(info(self.entity).fields[field].shape, Maybe):
            leaves = min(1.0, max(0.0, (1.0 + feed) / 2))  # each update enters or leaves
            return 1.0 - leaves, leaves
        if feed > 0 or self._gains(name, source):
            return max(0.0, min(1.0, -feed)), max(0.0, min(1.0, feed))
        # No new item has the value. Each is assumed to have it once in its life.
        once = self.rates.creates / open_rate
        enters = min(max(once, -feed), (1.0 - feed) / 2, 1.0)
        return enters, max(0.0, min(1.0 - enters, enters + feed))

    def _undeclared(self, name: str, source: ValueSource) -> Iterable[ItemWrite]:
        for each in self.rates.writes:
            if each.kind == "update" and source_field(name) in each.fields:
                states = _known(each.before, name, source), _known(each.after, name, source)
                if states == (None, None):
                    yield each

    def _is_fed(self, name: str, source: ValueSource) -> bool:
        """Whether declarations and defaults say which new items have this value."""
        if derived_part(name) is not None:
            return False
        created = [each for each in self.rates.writes if each.kind == "create" and each.rate]
        return bool(created) and all(
            _known(each.after, name, source) is not None or self._default(name, source) is not None
            for each in created
        )

    def _gains(self, name: str, source: ValueSource) -> bool:
        """Whether creates or declared updates give items this value."""
        return any(
            self._created(name, source, each)
            if each.kind == "create"
            else _known(each.after, name, source) and not _known(each.before, name, source)
            for each in self.rates.writes
        )

    def _feed(self, name: str, source: ValueSource) -> float:
        """Return how many items a second get this value, minus those that lose it.

        Undeclared updates do not count: they are assumed to balance the result.
        """
        total = 0.0
        for each in self.rates.writes:
            first = _known(each.before, name, source)
            last = _known(each.after, name, source)
            if each.kind == "create":
                total += each.rate * self._created(name, source, each)
            elif each.kind == "delete":
                total -= each.rate * (self._stock(name, source) if first is None else first)
            elif source_field(name) in each.fields and (first, last) != (None, None):
                total += each.rate * ((last or 0.0) - (first or 0.0))
        return total

    # -- guesses

    def guesses(self, path: AccessPath, write: ItemWrite) -> Iterable[Guess]:
        """Yield the guesses about a write's effect on the entries of an index."""
        for name, source in path.constants if write.kind == "update" else ():
            states = _known(write.before, name, source), _known(write.after, name, source)
            if source_field(name) in write.fields and states == (None, None):
                enters, leaves = self._flow(name, source)
                state = condition_text(_state(self.entity, name, source))
                field = shown_name(self.entity, source_field(name))
                yield Guess(
                    f"{state}: {enters:.0%} of the updates of {field} make it true, and "
                    f"{leaves:.0%} make it false",
                    f"updates({field}, before=..., after=...)",
                )
        for name in dict.fromkeys((*path.partition, *path.sort)) if write.kind == "update" else ():
            part = derived_part(name)
            declared = self.estimates.design.facts.moving(self.entity, name)
            if part is not None and declared is None and part.field in write.fields:
                shown = shown_name(self.entity, name)
                field = shown_name(self.entity, part.field)
                yield Guess(
                    f"{shown}: {self.changed_share(name):.2g} of the updates of {field} change it",
                    f"moving({shown}, ...)",
                )


def _state(entity: type[Entity], name: str, source: ValueSource) -> Comparison:
    field = FieldRef(entity, (source_field(name),))
    if source.is_absent:
        return Comparison(field, "not_exists", ())
    return Comparison(field, "=", (source.constant,))


def _known(states: Iterable[Comparison], name: str, source: ValueSource) -> float | None:
    """Return 1 if the declared states give a field the value of ``source``, else 0.

    Returns None if they do not mention the field. ``source`` may also say that the field is absent.
    """
    if derived_part(name) is not None:
        return None
    for each in states:
        if each.field.name != name:
            continue
        if each.operator in ("exists", "not_exists"):
            absent = each.operator == "not_exists"
            if source.is_absent:
                return float(absent)
            if absent:
                return 0.0
            continue
        value = keys.plain(each.values[0])
        if source.is_absent:
            return float(value is None)
        return float(value == keys.plain(source.constant))
    return None
