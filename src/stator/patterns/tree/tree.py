"""Trees: folders, categories, organisations. Subtrees of any size move and are deleted safely.

    PK  TREE#files#docs   SK  NODE                  _parent  home   _path  [root, home]   _data
    PK  TREE#files#home   SK  CHILD#Documents#docs  _node  docs     _data
    PK  TREE#files        SK  CHILD#Root#root       _node  root     the roots
    PK  TREE#files        SK  JOB#5be1...           _kind  move | delete   _node  docs

Attribute names start with an underscore, and the entity's own attributes lie in a map. Otherwise
the design's indexes, which are keyed by entity fields, would take these items in.

A node is two items, always written in one transaction: the *node item*, found by identity, and the
*child item*, which lies with its parent and sorts by the field the tree is ordered by. So the
children of a node are one Query. Descendants are read level by level, one Query for each node of
the level above, in parallel.

Keys hold no path, on purpose. A node's only link to its place is its parent, so a subtree of a
million nodes moves in one transaction of a few items. With paths in the keys, descendants would be
one Query per level. But a move would have to rewrite every item below, and readers would see the
tree half moved.

``_path`` holds the ancestors, so that one BatchGetItem reads them. It is a hint: readers compare it
with the parents of the nodes that were read. Where it is out of date, they read on from there.
After a move a *job* corrects it (``jobs``); ``resume()`` finishes the job if the process dies.
Until then reads are correct and take one more batch.

Invariants:

- Every node has one parent, or is a root. It is listed under that parent and nowhere else. This
  holds at every moment, also during a move.
- There are no cycles. A move is one transaction with a condition on each ancestor of the new
  parent: the ancestor's own parent is still the same as when it was read. Of two moves that would
  make a cycle together, one fails, reads again, and is refused. No lock is needed, and none can be
  left behind.
- A deleted subtree disappears from its parent's children at once. Its nodes disappear one by one
  while the job runs. ``get`` may find a node that the job has not reached yet, but nothing can be
  moved or added under a node that it has reached. A node that moves out before the job reaches it
  survives.

What fails: a process that dies during a move or deletion leaves a job item. ``resume()``, run at
start or on a schedule, finishes the job from where it stopped. Several calls may run at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from stator.errors import (
    ItemExists,
    ItemNotFound,
    RequestRefused,
    TransactionConflict,
    TreeCycle,
    TreeTooDeep,
)
from stator.model.values import Item
from stator.patterns.explanation import OperationCost, PatternExplanation
from stator.patterns.item_pages import ItemPages, query_all
from stator.patterns.tree.items import StoredNode, TreeItems, TreeJob
from stator.patterns.tree.jobs import TreeJobs
from stator.tables.argument_rules import checks_arguments, named
from stator.tables.operation import D, OnDb, iteration, operation
from stator.tables.unknown_outcome import several_writes
from stator.tables.work import Gather, Pause, Work, gathered
from stator.tables.writes.sender import write
from stator.tables.writes.statements import Statement

E = TypeVar("E")
# A move has a condition for each ancestor, and a transaction takes a hundred items.
MOST_LEVELS = 90
_AT_ONCE = 16
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Node(Generic[E]):
    """An entity and its place in a tree. ``parent`` is an identity, or None for a root.

    ``level`` is the distance from the node that was passed to the call: 1 for its children, -1 for
    its parent.
    """

    entity: E
    parent: Any
    level: int


@checks_arguments("Tree")
class Tree(OnDb[D], Generic[D, E]):
    """A tree of entities.

    ``Tree(db, Folder, name="files", order=Folder.name, unique_siblings=True)``

    Children are sorted by the field ``order``, or by identity. With ``unique_siblings``, no two
    children of a parent have the same value of that field. Wherever a node is expected, pass its
    identity or the entity.
    """

    def __init__(
        self,
        db: D,
        entity: type[E],
        *,
        name: str | None = None,
        order: Any = None,
        unique_siblings: bool = False,
    ) -> None:
        super().__init__(db)
        self.entity = entity
        self.name = name or entity.__name__
        self._items = TreeItems(
            self.context.schema.place, self.name, entity, order, unique_siblings
        )
        self.context.take_name("Tree", self.name, self._items.info.name)
        self._jobs = TreeJobs(self.context, self._items)
        self._label = f"tree {self.name}"

    # -- one node

    @operation
    def add(self, entity: E, parent: Any = None) -> Work[None]:
        """Add a node under ``parent``, or as a root.

        Raises ItemExists if its identity is already in the tree, and ItemNotFound if the parent
        does not exist. With ``unique_siblings``, raises UniqueTaken if a sibling has the same value
        of the field ``order``.
        """
        if not self._items.identities.owns(entity):
            raise RequestRefused(
                f"Tree.add() takes a {self._items.info.name}, not {named(type(entity))}",
                hint=f"pass the object: tree.add({self._items.info.name}(...), parent=...)",
            )
        text, shown = self._text(entity), self._shown(entity)
        above = None if parent is None else self._text(parent)

        def prepare() -> Work[list[Statement]]:
            path: tuple[str, ...] = ()
            checks = []
            if above is not None:
                found = yield from self._present(above)
                if above == text:
                    raise ItemExists(
                        f"{shown} cannot be added as its own child, and is already in the tree",
                        hint="use move() to give it another parent",
                    )
                path = found.path_below
                checks.append(self._items.check(found, path=True))
            _check_depth(len(path))
            node = StoredNode(
                text, above, path, self._items.child_text(entity, text), self._items.data(entity), 1
            )
            return [self._items.create_node(node, shown), self._items.put_child(node), *checks]

        yield from write(self.context, prepare, self._label, once=True)

    @operation
    def update(self, entity: E) -> Work[None]:
        """Replace the entity stored in a node, which is found by the identity of ``entity``.

        The node keeps its parent. Its position among siblings may change. Raises NewerVersion if a
        later version of the class wrote the stored entity.
        """
        text = self._text(entity)

        def prepare() -> Work[list[Statement]]:
            was = yield from self._present(text)
            self._items.refuse_newer(was)
            child = self._items.child_text(entity, text)
            node = StoredNode(
                text, was.parent, was.path, child, self._items.data(entity), was.revision + 1
            )
            statements = [self._items.replace_node(node, was)]
            if child == was.child:
                return [*statements, self._items.put_child(node, new=False)]
            return [*statements, self._items.put_child(node), self._items.delete_child(was)]

        yield from write(self.context, prepare, self._label, once=True)

    @operation
    def get(self, id: Any) -> Work[Node[E] | None]:
        """Return a node, or None if it does not exist or is being deleted."""
        found = yield from self._jobs.read(self._text(id))
        return None if found is None or found.job is not None else self._node(found, 0)

    # -- below

    @iteration
    def children(self, id: Any = None) -> ItemPages[Node[E]]:
        """Return the children of a node, in order, or the roots if ``id`` is left out."""
        text = None if id is None else self._text(id)
        return ItemPages(
            self._items.children(text), self._label, lambda item: self._child(item, text, 1)
        )

    @iteration
    def descendants(self, id: Any = None, levels: int | None = None) -> Descent[E]:
        """Return the nodes below a node: all of them, or only those up to ``levels`` levels down.

        Without ``id``, return all nodes of the tree. The nodes come level by level: first the
        children, then their children. Within a level, nodes are ordered by parent.
        """
        if levels is not None and levels < 1:
            raise RequestRefused(
                f"levels={levels} must be 1 or more", hint="leave it out to read all levels"
            )
        text = None if id is None else self._text(id)
        return Descent(self._items, self._label, self._child, text, levels)

    @operation
    def count(self, id: Any = None) -> Work[int]:
        """Return the number of nodes below a node or, without ``id``, of all nodes in the tree.

        Every counted node is read, so the cost grows with the tree.
        """
        total = 0
        pages = self.descendants.pages(id)
        while not pages.is_done:
            total += len((yield from pages.page()))
        return total

    # -- above

    @operation
    def path(self, id: Any) -> Work[list[Node[E]]]:
        """Return the nodes from the root down to the node itself.

        The list is empty if the node does not exist.
        """
        line = yield from self._line(self._text(id))
        return [self._node(each, -level) for level, each in reversed(list(enumerate(line)))]

    @operation
    def ancestors(self, id: Any) -> Work[list[Node[E]]]:
        """Return the nodes from the root down to the parent, usually read in one BatchGetItem.

        The list is empty for a root, and if the node does not exist.
        """
        return (yield from self.path.work(id))[:-1]

    # -- whole subtrees

    @operation
    @several_writes(
        "the node has moved, and the stored paths below it are not all corrected",
        "do not move it again; call resume() to finish",
    )
    def move(self, id: Any, parent: Any = None) -> Work[None]:
        """Move a node, with everything below it, under ``parent``.

        Without ``parent``, it becomes a root. Raises TreeCycle if ``parent`` is the node itself or
        one of its descendants, and TreeTooDeep if ``parent`` is on the deepest level. How deep the
        moved nodes reach is not checked: they would all have to be read.
        """
        text = self._text(id)
        above = None if parent is None else self._text(parent)
        job = TreeJob(self.context.token(), "move", text)
        has_moved = False

        def prepare() -> Work[list[Statement]]:
            nonlocal has_moved
            was = yield from self._present(text)
            has_moved = was.parent != above
            if not has_moved:
                return []
            line = [] if above is None else (yield from self._line(above))
            if above is not None and (not line or any(each.job is not None for each in line)):
                raise self._missing(above)  # or being deleted, perhaps with a node above it
            if any(each.text == text for each in line):
                raise TreeCycle(self.name, self._items.identities.value(text), parent)
            _check_depth(len(line))
            path = tuple(each.text for each in reversed(line))
            node = StoredNode(text, above, path, was.child, was.data, was.revision + 1)
            return [
                self._items.replace_node(node, was),
                self._items.put_child(node),
                self._items.delete_child(was),
                self._items.put_job(job, self.context.now()),
                *(self._items.check(each, path=False) for each in line),
            ]

        yield from write(self.context, prepare, self._label, once=True)
        if has_moved:
            yield from self._jobs.run(job)

    @operation
    @several_writes(
        "the node is marked as deleted, and nodes below it may be left",
        "call resume() to finish the deletion",
    )
    def delete(self, id: Any) -> Work[int]:
        """Delete a node and everything below it. Return the number of deleted nodes."""
        text = self._text(id)
        job = TreeJob(self.context.token(), "delete", text)
        is_there = False

        def prepare() -> Work[list[Statement]]:
            nonlocal is_there
            was = yield from self._jobs.read(text)
            is_there = was is not None and was.job is None
            if was is None or not is_there:
                return []
            return [
                self._items.mark(job.name, text, was.parent, was.child),
                self._items.delete_child(was),
                self._items.put_job(job, self.context.now()),
            ]

        yield from write(self.context, prepare, self._label, once=True)
        return (yield from self._jobs.run(job)) if is_there else 0

    @operation
    @several_writes("a part of the unfinished moves and deletions is done", "call resume() again")
    def resume(self) -> Work[int]:
        """Finish the moves and deletions that another process began and did not finish.

        Returns how many were finished.
        """
        found = yield from self._jobs.unfinished()
        for job in found:
            yield from self._jobs.run(job)
        return len(found)

    # -- reading

    def _text(self, id: Any) -> str:
        return self._items.identities.text(id)

    def _shown(self, id: Any) -> str:
        values = self._items.identities.values(id)
        return f"{self._items.info.name} {', '.join(map(str, values))}"

    def _missing(self, text: str) -> ItemNotFound:
        value = self._items.identities.value(text)
        return ItemNotFound(
            f"{self._items.info.name} {value} is not in the tree {self.name}", item=None
        )

    def _present(self, text: str) -> Work[StoredNode]:
        found = yield from self._jobs.read(text)
        if found is None or found.job is not None:
            raise self._missing(text)
        return found

    def _line(self, text: str) -> Work[list[StoredNode]]:
        """Return a node, its parent, and so on up to the root.

        If another writer changes one of them meanwhile, they are read again.
        """
        for attempt in range(_ATTEMPTS):
            found = yield from self._line_once(text)
            if found is not None:
                return found
            yield Pause(self.context.backoff(attempt))
        raise TransactionConflict(
            f"the nodes above {text} changed during each of {_ATTEMPTS} reads"
        )

    def _line_once(self, text: str) -> Work[list[StoredNode] | None]:
        first = yield from self._jobs.read(text)
        if first is None or first.job is not None:
            return []
        line = [first]
        seen = {text}
        while line[-1].parent is not None:
            known = yield from self._jobs.read_many(list(line[-1].path))
            before = len(line)
            while (above := line[-1].parent) in known:
                if above in seen:
                    return None
                seen.add(above)
                line.append(known[above])
            if len(line) == before:
                return None
        return line

    def _node(self, found: StoredNode, level: int) -> Node[E]:
        return Node(self._items.entity(found.data), self._value(found.parent), level)

    def _child(self, item: Item, parent: str | None, level: int) -> Node[E]:
        return Node(self._items.entity(item["_data"]), self._value(parent), level)

    def _value(self, text: str | None) -> Any:
        return None if text is None else self._items.identities.value(text)

    def explain(self) -> PatternExplanation:
        """Return the keys of the tree's items, and the units and cost of each operation."""
        place, start = self._items.place, self._items.partition
        return PatternExplanation(
            f"tree {self.name} of {self._items.info.name} in {place.table}",
            (
                f"{place.partition} {start}#<id>  {place.sort} NODE  _parent, _path, _data",
                f"{place.partition} {start}#<parent>  {place.sort} CHILD#<order>  _node, _data",
                f"{place.partition} {start}  {place.sort} CHILD#<order> (the roots), JOB#<job>",
            ),
            (
                OperationCost("add", "GetItem and TransactWriteItems of 3", 1, 6),
                OperationCost("get", "GetItem", 1),
                OperationCost("children", "Query", 1, note="for each 4 KB"),
                OperationCost(
                    "descendants",
                    "a Query for each node above the last level",
                    1,
                    note="for each node",
                ),
                OperationCost(
                    "ancestors", "GetItem and BatchGetItem", 2, note="1 for each ancestor"
                ),
                OperationCost(
                    "move",
                    "TransactWriteItems of 4 and one for each ancestor",
                    4,
                    10,
                    "and 1 write for each node below",
                ),
                OperationCost(
                    "delete", "two TransactWriteItems for each 40 nodes", 1, 6, "for each node"
                ),
            ),
            (
                f"nothing is added or moved below level {MOST_LEVELS}",
                "additions to one parent, and moves under one ancestor, compete for an item",
            ),
        )


class Descent(Generic[E]):
    """The result of ``descendants``, page by page: the children of a few parents at a time."""

    def __init__(
        self,
        items: TreeItems,
        label: str,
        read: Callable[[Item, str | None, int], Node[E]],
        text: str | None,
        levels: int | None,
    ) -> None:
        self._items = items
        self._label = label
        self._read = read
        self._levels = levels
        self._level = 1
        self._parents: list[str | None] = [text]
        self._below: list[str | None] = []
        self.is_done = False

    def page(self) -> Work[list[Node[E]]]:
        parents, self._parents = self._parents[:_AT_ONCE], self._parents[_AT_ONCE:]
        queries = [query_all(self._items.children(parent), self._label) for parent in parents]
        found: list[Node[E]] = []
        for parent, items in zip(parents, gathered((yield Gather(queries)))):
            found += [self._read(item, parent, self._level) for item in items]
            self._below += [item["_node"]["S"] for item in items]
        if not self._parents:
            self._parents, self._below = self._below, []
            self.is_done = not self._parents or self._level == self._levels
            self._level += 1
        return found


def _check_depth(levels: int) -> None:
    if levels >= MOST_LEVELS:
        raise TreeTooDeep(MOST_LEVELS)
