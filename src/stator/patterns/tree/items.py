"""The items of a tree: their keys, their contents, and the statements that write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.coordination.lease import LeaseAttributes, LeaseHold
from stator.coordination.stored_format import StoredFormat
from stator.design.entities.conditions import FieldRef
from stator.design.entities.entity import EntityInfo, info
from stator.design.plan import key_text as keys
from stator.errors import ConditionFailed, DesignError, ItemExists, UniqueTaken
from stator.model.values import Item, Value
from stator.patterns.identities import Identities, encoding_name
from stator.patterns.item_pages import prefix_query
from stator.tables.schema.place import Place
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.statements import LostRace, Statement

NODE = "NODE"
CHILD = "CHILD#"
JOB = "JOB#"
_FORMAT = StoredFormat("tree")
# A deletion claims nodes by its job's name. The claim never expires: any process can finish the
# job.
_CLAIM = LeaseAttributes(owner="_job", until=None, fence=None)


@dataclass(frozen=True, slots=True)
class StoredNode:
    """A node item as stored. ``text``, ``parent`` and ``path`` are identities as key text.

    ``child`` is the sort key of the node's child item, which lists it under its parent. ``job``
    names the job that is deleting the node, if any.
    """

    text: str
    parent: str | None
    path: tuple[str, ...]
    child: str
    data: Value
    revision: int
    job: str | None = None

    @property
    def path_below(self) -> tuple[str, ...]:
        """The ``path`` that this node's children store: from the root down to this node."""
        return (*self.path, self.text)


@dataclass(frozen=True, slots=True)
class TreeJob:
    """A move or deletion that is not finished.

    ``node`` is the node that was moved or is being deleted. After a move, the job corrects the
    paths below ``node``, one child after another. ``after`` is the sort key of the last child item
    whose path is corrected.
    """

    name: str
    kind: str
    node: str
    after: str | None = None


class TreeItems:
    """The keys and statements of one tree.

    In its methods, ``text`` and ``parent`` are identities of nodes as key text, and ``child`` is
    the sort key of a child item.
    """

    def __init__(
        self, place: Place, name: str, entity: type[Any], order: Any | None, unique_siblings: bool
    ) -> None:
        self.place = place
        self.name = name
        self.info: EntityInfo = info(entity)
        self.identities = Identities(self.info)
        self.order = _order_field(self.info, order)
        self.unique_siblings = unique_siblings
        self.partition = f"TREE#{keys.escape(name)}"
        _refuse_markers(self.info)
        if unique_siblings and self.order is None:
            raise DesignError(
                f"unique_siblings needs a field of {self.info.name} that tells siblings apart",
                hint=f"add order={self.info.name}.name, or another of its fields",
            )

    # -- keys

    def node_key(self, text: str) -> Item:
        return self.place.key(self._partition(text), NODE)

    def child_key(self, parent: str | None, child: str) -> Item:
        return self.place.key(self._partition(parent), child)

    def job_key(self, job: str) -> Item:
        return self.place.key(self.partition, JOB + job)

    def _partition(self, text: str | None) -> str:
        return self.partition if text is None else f"{self.partition}#{text}"

    def child_text(self, entity: Any, text: str) -> str:
        """Return the sort key of a node's child item, which orders the node among its siblings."""
        if self.order is None:
            return CHILD + text
        ordered = keys.encode(encoding_name(self.info, self.order), getattr(entity, self.order))
        return f"{CHILD}{ordered}" if self.unique_siblings else f"{CHILD}{ordered}#{text}"

    # -- requests

    def children(self, text: str | None, limit: int | None = None) -> dict[str, Any]:
        return prefix_query(self.place, self._partition(text), CHILD, limit)

    def jobs(self) -> dict[str, Any]:
        return prefix_query(self.place, self.partition, JOB)

    # -- items

    def data(self, entity: Any) -> Value:
        """Return the entity as one map, which is stored as a single attribute.

        As separate attributes, its fields could have the names of index keys, and enter an index.
        """
        return {"M": self.info.codec.encode(entity)}

    def entity(self, data: Value) -> Any:
        return self.info.codec.decode(data["M"])

    def refuse_newer(self, node: StoredNode) -> None:
        """Raise NewerVersion if a later version of the entity class wrote the node's entity."""
        self.info.shape_version.refuse_newer(node.data["M"])

    def node_item(self, node: StoredNode) -> Item:
        item: Item = self.node_key(node.text) | {
            "_node": {"S": node.text},
            "_path": path_value(node.path),
            "_child": {"S": node.child},
            "_data": node.data,
            "_revision": {"N": str(node.revision)},
            **_FORMAT.attributes(),
        }
        if node.parent is not None:
            item["_parent"] = {"S": node.parent}
        return item

    # -- statements

    def create_node(self, node: StoredNode, shown: str) -> Statement:
        item = self.node_item(node)
        request = self._put(item, new=True)
        return Statement(
            "Put",
            request,
            f"add {shown}",
            lambda found: ItemExists(f"{shown} is already in the tree", item=found),
        )

    def replace_node(self, node: StoredNode, was: StoredNode) -> Statement:
        """Return the statement that replaces the node item ``was`` by ``node``.

        The statement fails if the node has changed since ``was`` was read, or if a job is deleting
        the node.
        """
        written = Expressions()
        revision = written.value({"N": str(was.revision)})
        request = {
            "TableName": self.place.table,
            "Item": self.node_item(node),
            "ConditionExpression": f"{written.name('_revision')} = {revision}"
            f" AND {written.name('_path')} = {written.value(path_value(was.path))}"
            f" AND {written.name('_child')} = {written.value({'S': was.child})}"
            f" AND {_equal(written, '_parent', was.parent)} AND {_CLAIM.free()(written)}",
        }
        return Statement("Put", written.into(request), f"change {node.text}", lost_race)

    def put_child(self, node: StoredNode, *, new: bool = True) -> Statement:
        item = self.child_key(node.parent, node.child) | {
            "_node": {"S": node.text},
            "_data": node.data,
        }
        return Statement("Put", self._put(item, new=new), f"place {node.text}", self._sibling(node))

    def _shown(self, text: str) -> str:
        return f"{self.info.name} {self.identities.value(text)!r}"

    def _sibling(self, node: StoredNode) -> Any:
        def taken(item: Item | None) -> ConditionFailed:
            value = getattr(self.entity(node.data), self.order or "", None)
            return UniqueTaken(
                f"a sibling of {self._shown(node.text)} already has the same {self.order}",
                item=item,
                field=self.order or "",
                value=value,
            )

        return taken

    def delete_child(self, node: StoredNode) -> Statement:
        request = {"TableName": self.place.table, "Key": self.child_key(node.parent, node.child)}
        return Statement("Delete", request, f"take {node.text} away", lost_race)

    def check(self, node: StoredNode, *, path: bool) -> Statement:
        """Return a check that the node still has this parent, and that no job deletes it.

        With ``path``, the check also requires that the node's stored path is unchanged.
        """
        written = Expressions()
        terms = [
            f"attribute_exists({written.name(self.place.partition)})",
            _CLAIM.free()(written),
            _equal(written, "_parent", node.parent),
        ]
        if path:
            terms.append(f"{written.name('_path')} = {written.value(path_value(node.path))}")
        request = {
            "TableName": self.place.table,
            "Key": self.node_key(node.text),
            "ConditionExpression": " AND ".join(terms),
        }
        return Statement("ConditionCheck", written.into(request), f"check {node.text}", lost_race)

    def put_job(self, job: TreeJob, now: float) -> Statement:
        item: Item = self.job_key(job.name) | {
            "_kind": {"S": job.kind},
            "_node": {"S": job.node},
            "_started": {"N": f"{now:.6f}"},
            **_FORMAT.attributes(),
        }
        if job.after is not None:
            item["_after"] = {"S": job.after}
        return Statement("Put", self._put(item, new=False), f"{job.kind} {job.node}", lost_race)

    def job(self, item: Item) -> TreeJob:
        _FORMAT.check(item, self.name)
        name = item[self.place.sort]["S"].removeprefix(JOB)
        return TreeJob(
            name,
            item["_kind"]["S"],
            item["_node"]["S"],
            item["_after"]["S"] if "_after" in item else None,
        )

    def job_progress(self, name: str, after: str) -> dict[str, Any]:
        written = Expressions()
        request = {
            "TableName": self.place.table,
            "Key": self.job_key(name),
            "UpdateExpression": f"SET {written.name('_after')} = {written.value({'S': after})}",
            "ConditionExpression": f"attribute_exists({written.name(self.place.partition)})",
        }
        return written.into(request)

    def delete_job(self, job: str) -> Statement:
        return Statement(
            "Delete",
            {"TableName": self.place.table, "Key": self.job_key(job)},
            "end of the job",
            lost_race,
        )

    def mark(self, job: str, text: str, parent: str | None, child: str) -> Statement:
        """Return the statement that claims a node for ``job``, which is about to delete it.

        After that, only the job changes the node, and nothing is added below it. The claim is a
        lease without an end: any process may finish the job.
        """
        written = Expressions()
        free = f"({_CLAIM.free()(written)} OR {_CLAIM.held(LeaseHold(job))(written)})"
        request = {
            "TableName": self.place.table,
            "Key": self.node_key(text),
            "UpdateExpression": f"SET {written.name('_job')} = {written.value({'S': job})}",
            "ConditionExpression": f"attribute_exists({written.name(self.place.partition)})"
            f" AND {_equal(written, '_parent', parent)} AND {_equal(written, '_child', child)}"
            f" AND {free}",
        }
        return Statement("Update", written.into(request), f"mark {text}", lost_race)

    def check_marked(self, job: str, text: str) -> Statement:
        """Return a check that ``job`` still has its claim on a node, made by ``mark``."""
        written = Expressions()
        request = {
            "TableName": self.place.table,
            "Key": self.node_key(text),
            "ConditionExpression": _CLAIM.held(LeaseHold(job))(written),
        }
        return Statement("ConditionCheck", written.into(request), f"check {text}", lost_race)

    def delete_node(self, job: str, text: str) -> Statement:
        """Return the statement that deletes a node that ``job`` has claimed.

        The statement also succeeds if the node is already gone.
        """
        written = Expressions()
        condition = (
            f"attribute_not_exists({written.name(self.place.partition)})"
            f" OR {_CLAIM.held(LeaseHold(job))(written)}"
        )
        request = {
            "TableName": self.place.table,
            "Key": self.node_key(text),
            "ConditionExpression": condition,
        }
        return Statement("Delete", written.into(request), f"delete {text}", lost_race)

    def delete_place(self, text: str, parent: str, child: str) -> Statement:
        """Return the statement that deletes the child item of a node.

        The statement also succeeds if the child item is already gone. It fails if the item now
        belongs to another node with the same sort key.
        """
        written = Expressions()
        condition = (
            f"attribute_not_exists({written.name(self.place.partition)})"
            f" OR {written.name('_node')} = {written.value({'S': text})}"
        )
        request = {
            "TableName": self.place.table,
            "Key": self.child_key(parent, child),
            "ConditionExpression": condition,
        }
        return Statement("Delete", written.into(request), f"take {text} away", lost_race)

    def set_path(self, child: StoredNode, path: tuple[str, ...]) -> dict[str, Any]:
        written = Expressions()
        request = {
            "TableName": self.place.table,
            "Key": self.node_key(child.text),
            "UpdateExpression": f"SET {written.name('_path')} = {written.value(path_value(path))}",
            "ConditionExpression": _equal(written, "_parent", child.parent),
        }
        return written.into(request)

    def _put(self, item: Item, *, new: bool) -> dict[str, Any]:
        request: dict[str, Any] = {"TableName": self.place.table, "Item": item}
        if not new:
            return request
        written = Expressions()
        request["ConditionExpression"] = (
            f"attribute_not_exists({written.name(self.place.partition)})"
        )
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return written.into(request)


def read_node(item: Item) -> StoredNode:
    _FORMAT.check(item, f"node {item['_node']['S']}")
    return StoredNode(
        item["_node"]["S"],
        item["_parent"]["S"] if "_parent" in item else None,
        tuple(each["S"] for each in item["_path"]["L"]),
        item["_child"]["S"],
        item["_data"],
        int(item["_revision"]["N"]),
        item["_job"]["S"] if "_job" in item else None,
    )


def path_value(path: tuple[str, ...]) -> Value:
    return {"L": [{"S": text} for text in path]}


def lost_race(item: Item | None) -> ConditionFailed:
    return LostRace("another process changed the tree", item=item)


def _equal(written: Expressions, name: str, text: str | None) -> str:
    placeholder = written.name(name)
    return (
        f"attribute_not_exists({placeholder})"
        if text is None
        else f"{placeholder} = {written.value({'S': text})}"
    )


def _order_field(entity: EntityInfo, order: Any | None) -> str | None:
    if order is None:
        return None
    if not isinstance(order, FieldRef) or len(order.path) != 1 or order.name not in entity.fields:
        raise DesignError(
            f"order={order!r} is not a field of {entity.name}",
            hint=f"use order={entity.name}.name, or another of its fields",
        )
    encoding_name(entity, order.name)
    return order.name


def _refuse_markers(entity: EntityInfo) -> None:
    """Raise DesignError if a field of the entity has a marker such as ``unique()``.

    The tree stores nodes itself, so the marker would have no effect.
    """
    marked = [field.name for field in entity.fields.values() if field.role not in (None, "ident")]
    if marked:
        raise DesignError(
            f"{entity.name}.{marked[0]} is {entity.fields[marked[0]].role}(), "
            "which has no effect in a tree",
            hint="remove the marker, or move the field to an entity of its own with the same id",
        )
