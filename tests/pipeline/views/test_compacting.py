"""Groups do not grow with the shards that come and go."""

from __future__ import annotations

from stator.model.values import Item
from stator.pipeline.views.layout import BASE, ViewGroup
from stator.tables.work import Work

from ..simulation import is_complete
from .simulated import ViewSimulation, make_view


def kept_partials(world: ViewSimulation, zone: str) -> dict[str, bool]:
    """The partials of a zone, and whether they were merged."""
    place = world.context.schema.place
    items = world.engine.call("Scan", {"TableName": place.table})["Items"]
    start = f"VIEW#zones#1#P#{zone}"
    found = [item for item in items if item[place.partition]["S"] == start]
    return {item[place.sort]["S"].partition("#")[2]: "merged" in item for item in found}


def settle(world: ViewSimulation) -> None:
    written = world.written()
    world.settle(lambda: is_complete(world.applied.by_key, written))


def test_partials_of_shards_that_ended_are_merged() -> None:
    world = ViewSimulation(1)
    world.calm = True
    world.start_worker()
    most = 0
    for _ in range(8):
        world.write(60)
        settle(world)
        world.compare()
        world.roll()
        world.clock.advance(2 * 3600.0)
        world.write(60)
        settle(world)
        for _ in range(2000):
            world.step()
        world.compare()
        most = max(most, len(kept_partials(world, "north")))
    assert BASE in kept_partials(world, "north")
    # 4 open shards, 4 that ended just now, 4 emptied ones, and the base; 36 shards have written.
    assert most <= 16
    world.close()


def test_a_generation_in_the_making_is_left_alone() -> None:
    """Its builder may repeat a write, which would count twice in a merged partial."""
    world = ViewSimulation(2)
    compacting = make_view().in_database(world.context).compaction
    merged: list[tuple[int, ViewGroup]] = []

    def merge(generation: int, group: ViewGroup, over: object) -> Work[int]:
        merged.append((generation, group))
        return 1
        yield  # a generator that waits for nothing

    compacting.merge = merge  # type: ignore[method-assign]  # replaced for the test
    fresh = {
        (generation, ViewGroup("north", str(number))): None
        for generation in (1, 2, 3)
        for number in range(30)
    }
    for _ in range(20):
        world.run(compacting.some("group", fresh, 2))
    assert {generation for generation, _ in merged} == {2} and len(merged) == 30
    assert {generation for generation, _ in fresh} == {3} and len(fresh) == 30
    world.close()


def test_a_reader_that_sees_half_a_merge_reads_again_or_leaves_out() -> None:
    """BASE as it was after, a partial as it was before: it counts once."""
    from stator.pipeline.views.reader import _is_whole, _to_sum

    base: Item = {"merged": {"SS": ["a"]}, "merges": {"N": "1"}, "n": {"N": "5"}}
    before: Item = {"n": {"N": "5"}, "applied": {"S": "1"}}
    emptied: Item = {"applied": {"S": "1"}, "merged": {"BOOL": True}}
    assert _is_whole({BASE: base, "a": before}) and _to_sum({BASE: base, "a": before}) == [base]
    assert _is_whole({BASE: base, "a": emptied})
    assert not _is_whole({"a": emptied})
