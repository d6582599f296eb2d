"""The items behind a tree: their keys, what they hold, and the statements that write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stator.design.entities.conditions import FieldRef
from stator.design.entities.entity import EntityInfo, info
from stator.design.plan import key_text as keys
from stator.errors import ConditionFailed, DesignError, ItemExists, UniqueTaken
from stator.model.values import Item, Value
from stator.patterns.identities import Identities, encoding_name
from stator.patterns.item_pages import prefix_query
from stator.tables.schema import Place
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.statements import Statement
from stator.tables.writes.writes import LostRace

NODE = "NODE"
CHILD = "CHILD#"
JOB = "JOB#"


@dataclass(frozen=True, slots=True)
class Stored:
    """A node item. Identities are key text; ``child`` is the sort key of its child item under ``parent``."""

    text: str
    parent: str | None
    path: tuple[str, ...]
    child: str
    data: Value
    revision: int
    job: str | None = None

    @property
    def path_below(self) -> tuple[str, ...]:
        """The path of its children."""
        return (*self.path, self.text)


@dataclass(frozen=True, slots=True)
class Job:
    """``kind`` is delete or move; ``after`` the child item of ``node`` up to which the paths below a move are written."""

    name: str
    kind: str
    node: str
    after: str | None = None


class TreeItems:
    """Where the items of one tree are."""

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
                f"siblings of {self.info.name} are to differ, but not in what",
                hint=f"say order={self.info.name}.name, the field in which they differ",
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
        """The sort key of a child item: siblings sort by it."""
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
        """The entity in a map of its own: none of its attributes can be taken for a key of the table or an index."""
        return {"M": self.info.codec.encode(entity)}

    def entity(self, data: Value) -> Any:
        return self.info.codec.decode(data["M"])

    def node_item(self, node: Stored) -> Item:
        item: Item = self.node_key(node.text) | {
            "_node": {"S": node.text},
            "_path": path_value(node.path),
            "_child": {"S": node.child},
            "_data": node.data,
            "_revision": {"N": str(node.revision)},
        }
        if node.parent is not None:
            item["_parent"] = {"S": node.parent}
        return item

    # -- statements

    def create_node(self, node: Stored, shown: str) -> Statement:
        item = self.node_item(node)
        request = self._put(item, new=True)
        return Statement(
            "Put",
            request,
            f"add {shown}",
            lambda found: ItemExists(f"{shown} is in the tree already", item=found),
        )

    def replace_node(self, node: Stored, was: Stored) -> Statement:
        """Write a node again, if it is still as it was read."""
        written = Expressions()
        request = {
            "TableName": self.place.table,
            "Item": self.node_item(node),
            "ConditionExpression": f"{written.name('_revision')} = {written.value({'N': str(was.revision)})}"
            f" AND {written.name('_path')} = {written.value(path_value(was.path))}"
            f" AND {written.name('_child')} = {written.value({'S': was.child})}"
            f" AND {_equal(written, '_parent', was.parent)} AND attribute_not_exists({written.name('_job')})",
        }
        return Statement("Put", written.into(request), f"change {node.text}", raced)

    def put_child(self, node: Stored, *, new: bool = True) -> Statement:
        item = self.child_key(node.parent, node.child) | {
            "_node": {"S": node.text},
            "_data": node.data,
        }
        return Statement("Put", self._put(item, new=new), f"place {node.text}", self._sibling(node))

    def _sibling(self, node: Stored) -> Any:
        def taken(item: Item | None) -> ConditionFailed:
            value = getattr(self.entity(node.data), self.order or "", None)
            return UniqueTaken(
                f"a sibling has the {self.order} {value!r} already",
                item=item,
                field=self.order or "",
                value=value,
            )

        return taken

    def delete_child(self, node: Stored) -> Statement:
        request = {"TableName": self.place.table, "Key": self.child_key(node.parent, node.child)}
        return Statement("Delete", request, f"take {node.text} away", raced)

    def check(self, node: Stored, *, path: bool) -> Statement:
        """The node is where it was read, and not being deleted; with ``path``, its path is the same too."""
        written = Expressions()
        terms = [
            f"attribute_exists({written.name(self.place.partition)})",
            f"attribute_not_exists({written.name('_job')})",
            _equal(written, "_parent", node.parent),
        ]
        if path:
            terms.append(f"{written.name('_path')} = {written.value(path_value(node.path))}")
        request = {
            "TableName": self.place.table,
            "Key": self.node_key(node.text),
            "ConditionExpression": " AND ".join(terms),
        }
        return Statement("ConditionCheck", written.into(request), f"check {node.text}", raced)

    def put_job(self, job: Job, now: float) -> Statement:
        item: Item = self.job_key(job.name) | {
            "_kind": {"S": job.kind},
            "_node": {"S": job.node},
            "_started": {"N": f"{now:.6f}"},
        }
        if job.after is not None:
            item["_after"] = {"S": job.after}
        return Statement("Put", self._put(item, new=False), f"{job.kind} {job.node}", raced)

    def job(self, item: Item) -> Job:
        name = item[self.place.sort]["S"].removeprefix(JOB)
        return Job(
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
            raced,
        )

    def mark(self, job: str, text: str, parent: str | None, child: str) -> Statement:
        """Claim a node for a job that deletes it: from now on nobody else changes it, or adds to it."""
        written = Expressions()
        mine = written.value({"S": job})
        request = {
            "TableName": self.place.table,
            "Key": self.node_key(text),
            "UpdateExpression": f"SET {written.name('_job')} = {mine}",
            "ConditionExpression": f"attribute_exists({written.name(self.place.partition)})"
            f" AND {_equal(written, '_parent', parent)} AND {_equal(written, '_child', child)}"
            f" AND (attribute_not_exists({written.name('_job')}) OR {written.name('_job')} = {mine})",
        }
        return Statement("Update", written.into(request), f"mark {text}", raced)

    def check_marked(self, job: str, text: str) -> Statement:
        """The node is there, and the job's."""
        written = Expressions()
        request = {
            "TableName": self.place.table,
            "Key": self.node_key(text),
            "ConditionExpression": f"{written.name('_job')} = {written.value({'S': job})}",
        }
        return Statement("ConditionCheck", written.into(request), f"check {text}", raced)

    def delete_node(self, job: str, text: str) -> Statement:
        """Delete a node that the job has marked; one that is gone already is as good."""
        written = Expressions()
        condition = (
            f"attribute_not_exists({written.name(self.place.partition)})"
            f" OR {written.name('_job')} = {written.value({'S': job})}"
        )
        request = {
            "TableName": self.place.table,
            "Key": self.node_key(text),
            "ConditionExpression": condition,
        }
        return Statement("Delete", written.into(request), f"delete {text}", raced)

    def delete_place(self, text: str, parent: str, child: str) -> Statement:
        """Delete the child item of a node, unless another node has the place by now."""
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
        return Statement("Delete", written.into(request), f"take {text} away", raced)

    def set_path(self, child: Stored, path: tuple[str, ...]) -> dict[str, Any]:
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


def stored(item: Item) -> Stored:
    return Stored(
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


def raced(item: Item | None) -> ConditionFailed:
    return LostRace("the tree changed meanwhile", item=item)


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
            f"{order!r} is not a field of {entity.name}",
            hint=f"say order={entity.name}.name, or another of its fields",
        )
    encoding_name(entity, order.name)
    return order.name


def _refuse_markers(entity: EntityInfo) -> None:
    """Nodes are stored by the tree, not by the plan: what markers ask for would not be done."""
    marked = [field.name for field in entity.fields.values() if field.role not in (None, "ident")]
    if marked:
        raise DesignError(
            f"{entity.name}.{marked[0]} is {entity.fields[marked[0]].role}(), which nodes of a tree do not keep",
            hint="leave the marker out, or keep such fields in an entity beside the tree that has the node's identity",
        )
