"""What a change of a whole subtree leaves to be done, in steps that may stop anywhere and be taken again.

A job is an item written in the transaction that begins it; it goes when everything is done. Its steps are conditional writes that do
nothing when done twice, so a job needs no cursor: what is left to do is found by looking. Two processes may work at the same job.

**Deleting** goes from the top down and back up. A node is *marked* with the job's name, after which nobody adds to it or moves it; then its
children are marked, and theirs; a marked node without children is deleted together with its child item. Marking asks for the mark of the parent,
and deleting for that of the node, so that a process which was asleep cannot touch nodes that were added anew with the same identity meanwhile.

**Paths** below a node that has moved are written anew: from each node to its children, ``path`` of the node plus the node. After the children of a
node are written the node is read again; if its own path changed meanwhile, by the job of another move, they are written once more. So when
no job is left every path is right, in whatever order jobs ran.
"""

from __future__ import annotations

from stator.errors import ConditionFailed, TransactionFailed
from stator.model.values import Item
from stator.patterns.listing import Listing, query_all
from stator.patterns.tree_items import Stored, TreeItems, stored
from stator.tables.context import Context
from stator.tables.reads import batch_get
from stator.tables.sending import send_all
from stator.tables.work import Call, Gather, Work, gathered
from stator.tables.writes import Raced

_PAGE = 40  # two statements for each child, in a transaction of at most a hundred


class TreeJobs:
    def __init__(self, context: Context, items: TreeItems) -> None:
        self.context = context
        self.items = items
        self.label = f"tree {items.name}"

    def unfinished(self) -> Work[list[Item]]:
        return query_all(self.items.jobs(), self.label)

    def run(self, job: str, kind: str, text: str) -> Work[int]:
        """Gives how many nodes were deleted, or paths written."""
        if kind == "delete":
            return (yield from self._delete(job, text))
        done = yield from self._paths_below_moved(text)
        yield Call("DeleteItem", self.items.delete_job(job).request, self.label)
        return done

    # -- reading

    def read(self, text: str) -> Work[Stored | None]:
        request = {"TableName": self.items.place.table, "Key": self.items.node_key(text), "ConsistentRead": True}
        item = (yield Call("GetItem", request, self.label)).get("Item")
        return None if item is None else stored(item)

    def read_many(self, texts: list[str]) -> Work[dict[str, Stored]]:
        if not texts:
            return {}
        wanted = [self.items.node_key(text) for text in dict.fromkeys(texts)]
        found = yield from batch_get(self.context, self.items.place.table, wanted, self.label, consistent=True)
        return {node.text: node for node in map(stored, found)}

    # -- deleting

    def _delete(self, job: str, text: str) -> Work[int]:
        deleted = yield from self._delete_below(job, text)
        statements = [self.items.delete_node(job, text), self.items.delete_job(job)]
        try:
            yield from send_all(self.context, statements, self.label)
        except TransactionFailed as failed:
            _only_raced(failed)
            # Another has finished the job, and the node was added anew since.
            yield Call("DeleteItem", self.items.delete_job(job).request, self.label)
            return deleted
        return deleted + 1

    def _delete_below(self, job: str, text: str) -> Work[int]:
        """Delete everything under a marked node."""
        deleted = 0
        while True:
            children = yield from self._first_children(text)
            if not children:
                return deleted
            marked = yield from self._mark(job, text, children)
            if marked is None:
                return deleted
            # A marked node gets no more children, so one that has none now can go.
            below = yield Gather([self._first_children(child, 1) for child, _ in marked])
            inner = [child for child, found in zip(marked, gathered(below)) if found]
            for child, _ in inner:
                deleted += yield from self._delete_below(job, child)
            deleted += yield from self._delete_marked(job, text, marked)

    def _first_children(self, text: str, limit: int = _PAGE) -> Work[list[tuple[str, str]]]:
        """The first children of a node: identity, and sort key of the child item."""
        reply = yield Call("Query", self.items.children(text, limit), self.label)
        return [(item["node"]["S"], item[self.items.place.sort]["S"]) for item in reply["Items"]]

    def _mark(self, job: str, parent: str, children: list[tuple[str, str]]) -> Work[list[tuple[str, str]] | None]:
        """Mark children; gives those that are. One that was moved away or taken by another job meanwhile is not.

        None if the parent is not the job's any more: another has finished it, and what is there now was added since.
        """
        statements = [
            self.items.check_marked(job, parent),
            *(self.items.mark(job, child, parent, sort) for child, sort in children),
        ]
        try:
            yield from send_all(self.context, statements, self.label)
        except TransactionFailed as failed:
            _only_raced(failed)
            lost = {at - 1 for at, _, _ in failed.failures}
            if -1 in lost:
                return None
            rest = [child for at, child in enumerate(children) if at not in lost]
            return (yield from self._mark(job, parent, rest)) if rest else []
        return children

    def _delete_marked(self, job: str, parent: str, children: list[tuple[str, str]]) -> Work[int]:
        if not children:
            return 0
        statements = []
        for child, sort in children:
            statements.append(self.items.delete_node(job, child))
            statements.append(self.items.delete_place(child, parent, sort))
        try:
            yield from send_all(self.context, statements, self.label)
        except TransactionFailed as failed:
            _only_raced(failed)  # another at the same job was here before; look again
            return 0
        return len(children)

    # -- paths

    def _paths_below_moved(self, text: str) -> Work[int]:
        node = yield from self.read(text)
        return 0 if node is None else (yield from self._paths_below(node))

    def _paths_below(self, node: Stored) -> Work[int]:
        while True:
            done, is_stable = yield from self._write_paths(node)
            if is_stable:
                return done
            again = yield from self.read(node.text)
            if again is None:
                return done
            node = again

    def _write_paths(self, node: Stored) -> Work[tuple[int, bool]]:
        """Once through the children; False as soon as the node's own path is found to have changed."""
        done = 0
        pages = Listing[str](self.items.children(node.text, 100), self.label, lambda item: str(item["node"]["S"]))
        while not pages.is_done:
            texts = yield from pages.page()
            if not texts:
                continue
            found = yield from self.read_many(texts)
            children = [found[text] for text in texts if text in found and found[text].parent == node.text]
            done += yield from self._correct(children, node.path_below)
            again = (yield from self.read_many([node.text])).get(node.text)
            if again is not None and again.path != node.path:
                return done, False
            for count in gathered((yield Gather([self._paths_below_moved(child.text) for child in children]))):
                done += count
        return done, True

    def _correct(self, children: list[Stored], path: tuple[str, ...]) -> Work[int]:
        stale = [child for child in children if child.path != path]
        calls = [Call("UpdateItem", self.items.set_path(child, path), self.label) for child in stale]
        for result in (yield Gather(calls)) if calls else ():
            if isinstance(result, BaseException) and not isinstance(result, ConditionFailed):
                raise result  # a failed condition: the child has moved on, and has a path of its own
        return len(stale)


def _only_raced(failed: TransactionFailed) -> None:
    for _, _, error in failed.failures:
        if not isinstance(error, Raced):
            raise error
