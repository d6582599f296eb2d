"""A tree stays a tree: one place per node, no cycles, nothing lost, whoever moves or dies."""

from __future__ import annotations

import asyncio
import contextlib
import random
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import Entity, connect, ident, version
from stator.errors import (
    ConfigurationError,
    DesignError,
    ItemExists,
    ItemNotFound,
    RequestRefused,
    TransactionConflict,
    TreeCycle,
    TreeTooDeep,
    UniqueTaken,
)
from stator.patterns import Tree
from stator.tables.db import Db
from stator.testing import Killed
from tests.patterns.crashing import (
    Form,
    crashing,
    every_crash,
    every_item,
    finished,
    in_threads,
)
from tests.tables.shop import shop
from tests.targets import Target


class Folder(Entity):
    folder_id: str = ident()
    name: str
    PK: str = "an attribute with the name of a key"


Files = Tree[Db, Folder]


def files(db: Db) -> Files:
    return Tree(db, Folder, name="files", order=Folder.name, unique_siblings=True)


def folder(name: str, id: str | None = None) -> Folder:
    return Folder(folder_id=id or name, name=name)


def grow(tree: Files, shape: dict[str, Any], parent: str | None = None) -> None:
    for name, below in shape.items():
        tree.add(folder(name), parent)
        grow(tree, below, name)


SHAPE = {"root": {"a": {"a1": {"x": {}, "y": {}}, "a2": {}}, "b": {"b1": {}}}, "other": {}}


def parents(db: Db) -> dict[str, str | None]:
    """The tree as its items have it, after checking that they agree with each other."""
    nodes: dict[str, dict[str, Any]] = {}
    places: dict[str, list[str | None]] = {}
    for item in every_item(db):
        if not item["PK"]["S"].startswith("TREE#files"):
            continue
        above = item["PK"]["S"][len("TREE#files#") :] or None
        sort = item["SK"]["S"]
        assert not sort.startswith("JOB#"), "a job was left"
        if sort == "NODE":
            nodes[item["_node"]["S"]] = item
        else:
            places.setdefault(item["_node"]["S"], []).append(above)
    assert places.keys() == nodes.keys()
    above_of = {
        name: item["_parent"]["S"] if "_parent" in item else None for name, item in nodes.items()
    }
    for name, item in nodes.items():
        assert "_job" not in item
        assert places[name] == [above_of[name]]
        line: list[str] = []
        at = above_of[name]
        while at is not None:
            assert at not in line, "a cycle"
            line.insert(0, at)
            at = above_of[at]
        assert [each["S"] for each in item["_path"]["L"]] == line
    return above_of


def names(nodes: Any) -> list[str]:
    return [node.entity.name for node in nodes]


def test_reading_a_tree(target: Target) -> None:
    db = target.connect(shop())
    tree = files(db)
    grow(tree, SHAPE)
    assert names(tree.children()) == ["other", "root"]
    assert names(tree.children("root")) == names(tree.children(folder("root"))) == ["a", "b"]
    found = list(tree.descendants("root"))
    assert [(node.entity.name, node.parent, node.level) for node in found] == [
        ("a", "root", 1), ("b", "root", 1), ("a1", "a", 2), ("a2", "a", 2), ("b1", "b", 2),
        ("x", "a1", 3), ("y", "a1", 3),
    ]  # fmt: skip
    assert names(tree.descendants("root", levels=2)) == ["a", "b", "a1", "a2", "b1"]
    assert names(tree.path("x")) == ["root", "a", "a1", "x"]
    assert [(node.entity.name, node.level) for node in tree.ancestors("x")] == [
        ("root", -3),
        ("a", -2),
        ("a1", -1),
    ]
    assert (tree.count(), tree.count("a"), tree.count("y")) == (9, 4, 0)
    got = tree.get("a1")
    assert got is not None and (got.entity, got.parent) == (folder("a1"), "a")
    assert tree.get("nobody") is None
    assert tree.path("nobody") == [] and list(tree.children("nobody")) == []


def test_ancestors_are_one_batch() -> None:
    db = connect(shop(), measure=True)
    tree = files(db)
    grow(tree, SHAPE)
    asked: list[str] = []
    transport = db.runner.transport
    call = transport.call

    def counted(operation: str, *args: Any, **more: Any) -> Any:
        asked.append(operation)
        return call(operation, *args, **more)

    transport.call = counted  # type: ignore[method-assign]  # replaced for the test
    tree.ancestors("y")
    assert asked == ["GetItem", "BatchGetItem"]


def test_siblings_are_in_order_and_differ(target: Target) -> None:
    db = target.connect(shop("table-per-entity"))
    tree = files(db)
    tree.add(folder("root"))
    for name in ("b", "a#1", "a", "c"):
        tree.add(folder(name), "root")
    assert names(tree.children("root")) == ["a", "a#1", "b", "c"]
    with pytest.raises(UniqueTaken):
        tree.add(folder("a", id="another"), "root")
    with pytest.raises(ItemExists):
        tree.add(folder("new", id="a"), "root")
    with pytest.raises(ItemNotFound):
        tree.add(folder("new"), "nobody")
    tree.update(folder("z", id="a"))
    assert names(tree.children("root")) == ["a#1", "b", "c", "z"]
    with pytest.raises(UniqueTaken):
        tree.update(folder("b", id="a"))
    with pytest.raises(ItemNotFound):
        tree.update(folder("nobody"))
    tree.add(folder("b", id="b2"), "b")
    with pytest.raises(UniqueTaken):
        tree.move("b2", "root")
    loose = Tree(db, Folder, name="loose", order=Folder.name)
    for id in ("2", "1"):
        loose.add(folder("same", id))
    assert [node.entity.folder_id for node in loose.children()] == ["1", "2"]


def test_moving(target: Target) -> None:
    db = target.connect(shop())
    tree = files(db)
    grow(tree, SHAPE)
    tree.move("a", "b1")
    assert names(tree.path("x")) == ["root", "b", "b1", "a", "a1", "x"]
    assert names(tree.children("root")) == ["b"]
    for below in ("b", "b1", "a", "y"):
        with pytest.raises(TreeCycle):
            tree.move("b", below)
    tree.move("a1")
    tree.move("a1")
    assert names(tree.children()) == ["a1", "other", "root"]
    assert names(tree.ancestors("x")) == ["a1"]
    with pytest.raises(ItemNotFound):
        tree.move("nobody", "a")
    with pytest.raises(ItemNotFound):
        tree.move("a", "nobody")
    assert parents(db) == {
        "root": None, "b": "root", "b1": "b", "a": "b1", "a2": "a", "a1": None, "x": "a1",
        "y": "a1",
        "other": None,
    }  # fmt: skip


def test_deleting(target: Target) -> None:
    db = target.connect(shop())
    tree = files(db)
    grow(tree, SHAPE)
    for number in range(60):
        tree.add(folder(f"leaf{number}"), "a2")
    assert tree.delete("a") == 65
    assert tree.delete("a") == 0
    assert tree.get("leaf3") is None and tree.get("a") is None
    assert parents(db) == {"root": None, "b": "root", "b1": "b", "other": None}
    tree.add(folder("a"), "root")
    assert tree.delete("root") == 4


def test_a_move_that_dies_at_any_call_has_happened_whole_or_not_at_all(
    target: Target, form: Form
) -> None:
    db = target.connect(shop())
    tree = files(db)
    grow(tree, SHAPE)
    before = parents(db)
    moved = before | {"a": "b1"}
    seen = set()
    for _ in every_crash(db, lambda dying: files(dying).move("a", "b1"), form=form):
        names_now = names(tree.path("x"))
        assert names_now in (["root", "a", "a1", "x"], ["root", "b", "b1", "a", "a1", "x"])
        assert names(tree.descendants("root", levels=1)) in (["a", "b"], ["b"])
        resumed = tree.resume()
        seen.add(resumed)
        assert parents(db) == (moved if len(names_now) == 6 else before)
        assert tree.resume() == 0
        tree.move("a", "root")
    assert parents(db) == moved
    assert seen == {0, 1}


def test_a_deletion_that_dies_at_any_call_is_finished_later(target: Target, form: Form) -> None:
    db = target.connect(shop())
    tree = files(db)
    grow(tree, SHAPE)
    whole = parents(db)
    left = {"root": None, "b": "root", "b1": "b", "other": None}
    for _ in every_crash(db, lambda dying: files(dying).delete("a"), form=form):
        if names(tree.children("root")) == ["b"]:  # it has begun: nobody sees it there any more
            assert tree.get("a") is None
            with pytest.raises(ItemNotFound):
                tree.add(folder("late"), "a")
            for gone in ("a", "a1", "x"):
                with pytest.raises(ItemNotFound):
                    tree.move("other", gone)
        tree.resume()
        now = parents(db)
        assert now in (whole, left)
        if now == left:
            grow(tree, {"a": SHAPE["root"]["a"]}, "root")
    assert parents(db) == left


@pytest.mark.parametrize("what", ["move", "delete"])
def test_large_subtrees_come_to_an_end_however_often_the_process_dies(
    what: str, form: Form
) -> None:
    """Each life is too short for the job; parents have more children than a page holds."""
    db = connect(shop())
    tree = files(db)
    grow(tree, SHAPE)
    for number in range(130):
        tree.add(folder(f"leaf{number}"), "a1")
        tree.add(folder(f"twig{number}"), f"leaf{number}" if number % 3 == 0 else "x")
    before = parents(db)
    dying = files(crashing(db, 8, reply_lost=True, form=form))
    with pytest.raises(Killed):
        finished(dying.delete("a") if what == "delete" else dying.move("a", "b1"))
    lives = 0
    for lives in range(100):
        mine = files(crashing(db, 150, reply_lost=lives % 2 == 0, form=form))
        mine._jobs.nodes_in_a_job = 10
        try:
            if finished(mine.resume()) == 0:
                break
        except Killed:
            assert names(tree.children("b")) == ["b1"]
    assert 3 < lives < 100
    if what == "move":
        assert parents(db) == before | {"a": "b1"}
    else:
        assert parents(db) == {"root": None, "b": "root", "b1": "b", "other": None}


def test_a_job_taken_up_by_two_is_done_once(target: Target) -> None:
    db = target.connect(shop())
    tree = files(db)
    grow(tree, SHAPE)
    for number in range(30):
        tree.add(folder(f"leaf{number}"), "a1")
    stopped = every_crash(db, lambda dying: files(dying).delete("a"), step=4)
    next(stopped)
    next(stopped)
    next(stopped)
    assert in_threads(tree.resume, tree.resume, files(target.connect(shop())).resume) == []
    assert parents(db) == {"root": None, "b": "root", "b1": "b", "other": None}


def test_a_late_worker_does_not_delete_what_was_added_since() -> None:
    db = connect(shop())
    tree = files(db)
    grow(tree, SHAPE)
    jobs = tree._jobs
    crash = every_crash(db, lambda dying: files(dying).delete("a"), step=3)
    next(crash)
    next(crash)
    next(crash)
    [job] = db.run(jobs.unfinished())
    name = job.name
    tree.resume()
    grow(tree, {"a": SHAPE["root"]["a"]}, "root")
    whole = parents(db)
    assert db.run(jobs.run(job)) == 0
    assert db.run(jobs._delete_below(name, "a")) == 0
    assert db.run(jobs._delete_marked(name, "a", [("a2", "CHILD#a2")])) == 0
    tree.delete("a2")
    tree.add(folder("a2", id="stranger"), "a")  # another node at the place of the deleted one
    assert db.run(jobs._delete_marked(name, "a", [("a2", "CHILD#a2")])) == 0
    del whole["a2"]
    assert parents(db) == whole | {"stranger": "a"}


def test_threads_move_the_same_nodes(target: Target) -> None:
    """Moves that would make a cycle together, over and over."""
    db = target.connect(shop())
    tree = files(db)
    all_names = [f"n{number}" for number in range(8)]
    tree.add(folder("root"))
    for name in all_names:
        tree.add(folder(name), "root")

    def mover(seed: int) -> None:
        chance = random.Random(seed)
        mine = files(db)
        for _ in range(12):
            node, above = chance.sample(all_names, 2)
            with contextlib.suppress(TreeCycle, TransactionConflict):
                mine.move(node, chance.choice([above, above, "root"]))

    assert in_threads(*(partial(mover, seed) for seed in range(4))) == []
    tree.resume()
    assert parents(db).keys() == {"root", *all_names}
    assert tree.count("root") == 8


def test_threads_move_and_add_while_a_subtree_is_deleted(target: Target) -> None:
    db = target.connect(shop())
    tree = files(db)
    grow(tree, SHAPE)
    for number in range(20):
        tree.add(folder(f"leaf{number}"), "a1")

    def adder() -> None:
        for number in range(10):
            try:
                files(db).add(folder(f"new{number}"), "a1")
            except (ItemNotFound, TransactionConflict):
                return

    def mover() -> None:
        for number in range(20):
            with contextlib.suppress(ItemNotFound, TransactionConflict):
                files(db).move(f"leaf{number}", "other")

    assert in_threads(lambda: files(db).delete("a"), adder, mover) == []
    tree.resume()
    left = parents(db)
    assert not left.keys() & {"a", "a1", "a2", "x", "y", *(f"new{number}" for number in range(10))}
    assert {above for name, above in left.items() if name.startswith("leaf")} <= {"other"}


def test_tasks(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(shop()) as db:
            tree = Tree(db, Folder, name="files", order=Folder.name)
            await tree.add(folder("root"))
            await asyncio.gather(*(tree.add(folder(f"n{number}"), "root") for number in range(6)))
            assert [node.entity.name async for node in tree.children("root")] == [
                f"n{number}" for number in range(6)
            ]
            await tree.move("n1", "n2")
            assert names(await tree.ancestors("n1")) == ["root", "n2"]
            assert [node.level async for node in tree.descendants()] == [1, 2, 2, 2, 2, 2, 3]
            assert await tree.delete("root") == 7
            assert await tree.resume() == 0

    asyncio.run(main())


def test_tasks_that_are_cancelled_anywhere(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(shop()) as db:
            tree = Tree(db, Folder, name="files", order=Folder.name, unique_siblings=True)
            for turn in range(8):
                await tree.add(folder("root"))
                await tree.add(folder("a"), "root")
                await tree.add(folder("b"), "root")
                for number in range(5):
                    await tree.add(folder(f"n{number}"), "a")
                for work in (tree.move("a", "b"), tree.delete("root")):
                    task = asyncio.ensure_future(work)
                    await asyncio.sleep(turn * 0.002)
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                    await asyncio.sleep(
                        pause
                    )  # a server may still be at a request whose sender has gone
                    await tree.resume()
                    parents(plain)
                await tree.delete("root")
                assert parents(plain) == {}

    plain = target.connect(shop())
    pause = 0.0 if target.kind in ("memory", "disk") else 0.3
    asyncio.run(main())


NAMES = st.sampled_from("abcdefg")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), NAMES, st.none() | NAMES),
        st.tuples(st.just("move"), NAMES, st.none() | NAMES),
        st.tuples(st.just("delete"), NAMES),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(STEPS)
def test_it_does_what_a_dictionary_does(steps: list[tuple[Any, ...]]) -> None:
    model: dict[str, str | None] = {}

    def below(name: str) -> set[str]:
        return {name}.union(*(below(child) for child, above in model.items() if above == name))

    with connect(shop()) as db:
        tree = files(db)
        for what, name, *more in steps:
            if what == "delete":
                gone = below(name) if name in model else set()
                assert tree.delete(name) == len(gone)
                for each in gone:
                    del model[each]
                continue
            [above] = more
            try:
                if what == "add":
                    tree.add(folder(name), above)
                else:
                    tree.move(name, above)
            except ItemExists:
                assert name in model
            except ItemNotFound:
                assert above not in model or (what == "move" and name not in model)
            except TreeCycle:
                assert above in below(name)
            else:
                assert above is None or above in model
                model[name] = above
        assert parents(db) == model
        assert tree.count() == len(model)


def test_one_name_belongs_to_one_entity() -> None:
    db = connect(shop())
    assert files(db).name == files(db).name == "files"
    with pytest.raises(ConfigurationError, match="'files' holds Folder already, and cannot hold P"):
        Tree(db, Part, name="files")
    Tree(db, Part, name="parts")
    files(connect(shop()))


def test_a_move_may_take_nodes_below_the_deepest_level_and_back(target: Target) -> None:
    """Only the target of an addition or a move is checked; deeper nodes are as reachable."""
    tree = files(target.connect(shop()))
    for line in ("a", "b"):
        for level in range(56):
            tree.add(folder(f"{line}{level}"), f"{line}{level - 1}" if level else None)
    tree.move("b0", "a55")
    assert names(tree.path("b55")) == [*(f"a{n}" for n in range(56)), *(f"b{n}" for n in range(56))]
    assert names(tree.children("b54")) == ["b55"] and tree.count("a0") == 111
    for refused in (lambda: tree.add(folder("c"), "b55"), lambda: tree.move("a1", "b55")):
        with pytest.raises((TreeTooDeep, TreeCycle)):
            refused()
    tree.move("b50", "a0")
    assert names(tree.path("b51")) == ["a0", "b50", "b51"]
    assert tree.delete("a0") == 112


def test_what_does_not_make_sense_is_refused() -> None:
    class Versioned(Entity):
        id: str = ident()
        rev: int = version()

    class Pair(Entity):
        left: str = ident()
        right: int = ident()

    db = connect(shop())
    with pytest.raises(DesignError, match="version"):
        Tree(db, Versioned)
    with pytest.raises(DesignError, match="tells siblings apart"):
        Tree(db, Folder, unique_siblings=True)
    with pytest.raises(DesignError, match="not a field"):
        Tree(db, Folder, order="name")
    with pytest.raises(RequestRefused):
        list(files(db).descendants(levels=0))
    pairs = Tree(db, Pair)
    pairs.add(Pair(left="a", right=1))
    pairs.add(Pair(left="a", right=2), ("a", 1))
    assert [node.parent for node in pairs.children(("a", 1))] == [("a", 1)]
    with pytest.raises(RequestRefused):
        pairs.get("a")
    deep = files(db)
    for level in range(90):
        deep.add(folder(f"d{level}"), f"d{level - 1}" if level else None)
    with pytest.raises(TreeTooDeep):
        deep.add(folder("deeper"), "d89")
    deep.add(folder("beside"))
    deep.move("beside", "d88")
    with pytest.raises(TreeTooDeep):
        deep.move("beside", "d89")
    assert len(deep.ancestors("d89")) == 89


def test_it_says_what_it_costs() -> None:
    text = str(files(connect(shop())).explain())
    assert "TREE#files#<id>" in text and "ancestors: GetItem and BatchGetItem" in text


def test_messages_of_a_tree_show_identities_but_no_values(target: Target) -> None:
    tree = files(target.connect(shop()))
    tree.add(folder("Zaphod", "f1"))
    with pytest.raises(UniqueTaken) as taken:
        tree.add(folder("Zaphod", "f2"))
    assert taken.value.message == "a sibling of Folder 'f2' already has the same name"
    assert (taken.value.field, taken.value.value) == ("name", "Zaphod")


class Part(Entity):
    shelf: str = ident()
    number: int = ident()
    name: str


def test_a_wrong_identity_is_shown_by_its_type() -> None:
    tree: Any = Tree(connect(shop()), Part, name="parts")
    for given_, shown in ((folder("Zaphod"), "a Folder"), (("Zaphod",), "a tuple of 1")):
        with pytest.raises(RequestRefused) as caught:
            tree.get(given_)
        assert caught.value.message == f"{shown} is not an identity of Part"
