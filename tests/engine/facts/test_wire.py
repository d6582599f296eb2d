"""The form of an answer on the wire."""

from __future__ import annotations

import orjson

from stator.model.scope import Scope

from .subject import Subject, attributes


def test_operations_without_output_answer_with_nothing_at_all(subject: Subject) -> None:
    arn = Scope().table_arn("facts")
    tag = {"ResourceArn": arn, "Tags": [{"Key": "team", "Value": "shop"}]}
    untag = {"ResourceArn": arn, "TagKeys": ["team"]}
    for operation, request in (("TagResource", tag), ("UntagResource", untag)):
        reply = subject.engine.submit(operation, orjson.dumps(request), Scope())
        assert (reply.status, reply.body) == (200, b"")


def test_other_operations_answer_with_an_object(subject: Subject) -> None:
    put = {"TableName": "facts", "Item": attributes(p="p")}
    assert subject.engine.submit("PutItem", orjson.dumps(put), Scope()).body == b"{}"
