"""Tree jobs: the rest of a move or deletion, in steps that may stop anywhere and be repeated.

A job is an item written in the transaction that starts the move or deletion, and deleted when
everything is done. Its steps are conditional writes that have no effect the second time. A process
finds the remaining work by reading. Two processes may work on the same job.

**Deleting** goes from the top down and back up. A node is *marked*: the job claims it (a lease
without an end, ``coordination.lease``), and from then on nobody adds to it or moves it. Then its
children are marked, and theirs. A marked node without children is deleted together with its child
item. Marking a node requires the mark on its parent, and deleting a node requires its own mark. A
process that was suspended therefore cannot touch nodes that were added again with the same
identity.

**Paths** below a moved node are corrected from the top down: the ``path`` of a child is the path of
its parent plus the parent itself. After the children are written, the parent is read again. If its
own path has changed by then, through another move, the children are written once more. So when no
job is left, every path is right, no matter in which order the jobs ran. The job records its
progress after every 25 children of its node. After a thousand nodes it leaves the rest to new jobs.
The work therefore finishes, no matter how large the subtree is or how often the process dies.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from stator.errors import ConditionFailed, TransactionFailed
from stator.model.values import Item
from stator.patterns.item_pages import ItemPages, query_all
from stator.patterns.tree.items import StoredNode, TreeItems, TreeJob, read_node
from stator.tables.context import Context
from stator.tables.reads.items import batch_get
from stator.tables.work import Call, Gather, Work, gathered
from stator.tables.writes.sender import send_all
from stator.tables.writes.statements import LostRace

NODES_IN_A_JOB = 1000
_PATHS_PAGE = 25
_PAGE = 40  # two statements for each child, in a transaction of at most a hundred


@dataclass(slots=True)
class _Budget:
    """How many nodes one job may still correct, and the new jobs for the other nodes."""

    left: int
    jobs: list[TreeJob] = field(default_factory=list)


class TreeJobs:
    def __init__(
        self, context: Context, items: TreeItems, nodes_in_a_job: int = NODES_IN_A_JOB
    ) -> None:
        self.context = context
        self.items = items
        self.nodes_in_a_job = nodes_in_a_job
        self.label = f"tree {items.name}"

    def unfinished(self) -> Work[list[TreeJob]]:
        found = yield from query_all(self.items.jobs(), self.label)
        return [self.items.job(item) for item in found]

    def run(self, job: TreeJob) -> Work[int]:
        """Finish a move or deletion.

        Returns how many nodes were deleted, or how many paths were corrected.
        """
        return (
            (yield from self._delete(job.name, job.node))
            if job.kind == "delete"
            else (yield from self._paths(job))
        )

    # -- reading

    def read(self, text: str) -> Work[StoredNode | None]:
        request = {
            "TableName": self.items.place.table,
            "Key": self.items.node_key(text),
            "ConsistentRead": True,
        }
        item = (yield Call("GetItem", request, self.label)).get("Item")
        return None if item is None else read_node(item)

    def read_many(self, texts: list[str]) -> Work[dict[str, StoredNode]]:
        if not texts:
            return {}
        wanted = [self.items.node_key(text) for text in dict.fromkeys(texts)]
        found = yield from batch_get(
            self.context, self.items.place.table, wanted, self.label, consistent=True
        )
        return {node.text: node for node in map(read_node, found)}

    # -- deleting

    def _delete(self, job: str, text: str) -> Work[int]:
        deleted = yield from self._delete_below(job, text)
        statements = [self.items.delete_node(job, text), self.items.delete_job(job)]
        try:
            yield from send_all(self.context, statements, self.label)
        except TransactionFailed as failed:
            _only_raced(failed)
            # Another process has finished the job, and the node was added again since.
            yield Call("DeleteItem", self.items.delete_job(job).request, self.label)
            return deleted
        return deleted + 1

    def _delete_below(self, job: str, text: str) -> Work[int]:
        """Delete all nodes below a node that the job has claimed. Return how many."""
        deleted = 0
        while True:
            children = yield from self._first_children(text)
            if not children:
                return deleted
            marked = yield from self._mark(job, text, children)
            if marked is None:
                return deleted
            # A marked node gets no more children, so one that has none can be deleted.
            below = yield Gather([self._first_children(child, 1) for child, _ in marked])
            inner = [child for child, found in zip(marked, gathered(below)) if found]
            for child, _ in inner:
                deleted += yield from self._delete_below(job, child)
            deleted += yield from self._delete_marked(job, text, marked)

    def _first_children(self, text: str, limit: int = _PAGE) -> Work[list[tuple[str, str]]]:
        """Return the first children of a node, up to ``limit``.

        Each result is a pair: the child's identity, and the sort key of its child item.
        """
        reply = yield Call("Query", self.items.children(text, limit), self.label)
        return [(item["_node"]["S"], item[self.items.place.sort]["S"]) for item in reply["Items"]]

    def _mark(
        self, job: str, parent: str, children: list[tuple[str, str]]
    ) -> Work[list[tuple[str, str]] | None]:
        """Claim children for the job that deletes them. Return the children that it has claimed.

        A child that was moved away, or claimed by another job, is left out. Returns None if the job
        no longer has its claim on the parent. Another process has then finished the job, and the
        children belong to a node that was added later with the same identity.
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
            _only_raced(failed)  # another process on the same job was first; look again
            return 0
        return len(children)

    # -- paths

    def _paths(self, job: TreeJob) -> Work[int]:
        done = 0
        left = [job]
        while left:
            job = left.pop()
            budget = _Budget(self.nodes_in_a_job)
            done += yield from self._paths_below(job.node, budget, job)
            yield Call("DeleteItem", self.items.delete_job(job.name).request, self.label)
            left += budget.jobs
        return done

    def _paths_below(self, text: str, budget: _Budget, job: TreeJob | None = None) -> Work[int]:
        """Correct the stored paths of all nodes below a node. Return how many were corrected.

        ``job`` is the job of a move, for the node that was moved; its progress is stored. It is
        None for nodes further down. Once ``budget`` is used up, a new job is created for the
        remaining children of such a node.
        """
        node = yield from self.read(text)
        if node is None:
            return 0
        done = 0
        pages = self._pages(text, None if job is None else job.after)
        while not pages.is_done:
            if job is None and budget.left <= 0:
                yield from self._postpone(text, pages.position, budget)
                break
            children = yield from self._children(text, pages)
            budget.left -= len(children)
            done += yield from self._correct(children, node.path_below)
            again = yield from self.read(text)
            if again is None:
                break
            if again.path != node.path:
                node, pages = again, self._pages(text, None)
                continue
            inner = yield from self._with_children(children)
            done += sum(
                gathered((yield Gather([self._paths_below(child, budget) for child in inner])))
            )
            if job is not None and pages.position is not None:
                yield from self._remember(job, pages.position)
        return done

    def _pages(self, text: str, after: str | None) -> ItemPages[str]:
        start = None if after is None else self.items.child_key(text, after)
        request = self.items.children(text, _PATHS_PAGE)
        return ItemPages(request, self.label, lambda item: str(item["_node"]["S"]), start=start)

    def _children(self, text: str, pages: ItemPages[str]) -> Work[list[StoredNode]]:
        texts = yield from pages.page()
        found = yield from self.read_many(texts)
        return [found[each] for each in texts if each in found and found[each].parent == text]

    def _with_children(self, nodes: list[StoredNode]) -> Work[list[str]]:
        below = gathered((yield Gather([self._first_children(node.text, 1) for node in nodes])))
        return [node.text for node, found in zip(nodes, below) if found]

    def _postpone(self, text: str, position: Item | None, budget: _Budget) -> Work[None]:
        after = None if position is None else position[self.items.place.sort]["S"]
        job = TreeJob(self.context.token(), "move", text, after)
        yield Call("PutItem", self.items.put_job(job, self.context.now()).request, self.label)
        budget.jobs.append(job)

    def _remember(self, job: TreeJob, position: Item) -> Work[None]:
        """Record how far a job has got, so that another process can resume it at this point."""
        request = self.items.job_progress(job.name, position[self.items.place.sort]["S"])
        with contextlib.suppress(ConditionFailed):  # another process has finished it
            yield Call("UpdateItem", request, self.label)

    def _correct(self, children: list[StoredNode], path: tuple[str, ...]) -> Work[int]:
        stale = [child for child in children if child.path != path]
        calls = [
            Call("UpdateItem", self.items.set_path(child, path), self.label) for child in stale
        ]
        for result in (yield Gather(calls)) if calls else ():
            if isinstance(result, BaseException) and not isinstance(result, ConditionFailed):
                raise result  # a failed condition means that the child has moved elsewhere
        return len(stale)


def _only_raced(failed: TransactionFailed) -> None:
    for _, _, error in failed.failures:
        if not isinstance(error, LostRace):
            raise error
