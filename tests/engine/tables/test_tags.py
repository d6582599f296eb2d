"""TagResource, UntagResource and ListTagsOfResource.

Facts: conformance.md section 12, "More control-plane texts".
"""

from __future__ import annotations

from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import AccessDenied, ResourceInUse, ResourceNotFound

from .declare import ARN, POVI, on_demand, refusal

TABLE = f"{ARN}orders"


def tags(**values: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in values.items()]


def listed(engine: Engine) -> dict[str, str]:
    found = engine.call("ListTagsOfResource", {"ResourceArn": TABLE, "NextToken": "ignored"})
    assert set(found) == {"Tags"}
    return {tag["Key"]: tag["Value"] for tag in found["Tags"]}


@pytest.fixture
def tagged(engine: Engine) -> Engine:
    engine.call("CreateTable", on_demand(Tags=tags(team="data", stage="")))
    return engine


def test_tags_are_added_replaced_and_removed(tagged: Engine) -> None:
    assert listed(tagged) == {"team": "data", "stage": ""}
    assert (
        tagged.call(
            "TagResource", {"ResourceArn": TABLE, "Tags": tags(stage="live", owner="Zoë @ x")}
        )
        == {}
    )
    assert listed(tagged) == {"team": "data", "stage": "live", "owner": "Zoë @ x"}
    assert tagged.call("UntagResource", {"ResourceArn": TABLE, "TagKeys": ["team", "absent"]}) == {}
    assert listed(tagged) == {"stage": "live", "owner": "Zoë @ x"}


BAD_TAGS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "no tags": ([], "Atleast one Tag needs to be provided as Input."),
    "bad characters in a key": (tags(**{"a#b": "x"}), "The Tag Key provided is invalid, Key: a#b"),
    "bad characters in a value": (tags(a="x;y"), "The Tag Value provided is invalid, Value: x;y"),
    "a reserved prefix": (
        tags(**{"Aws:foo": "x"}),
        "Tag Key cannot be prefixed with aws:, Key: Aws:foo",
    ),
    "one key twice": (
        [*tags(dup="1"), *tags(dup="1")],
        "Duplicate Tag Keys provided as input: Duplicate Tag Key found dup",
    ),
    "more than fifty": (
        tags(**{f"k{n}": "v" for n in range(51)}),
        "Number of Tags exceed the current limit for the provided ResourceArn",
    ),
    "more than fifty in the end": (
        tags(**{f"k{n}": "v" for n in range(49)}),
        "Number of Tags exceed the current limit for the provided ResourceArn",
    ),
}


@pytest.mark.parametrize(("given", "text"), BAD_TAGS.values(), ids=BAD_TAGS)
def test_bad_tags_are_refused_all_together(
    tagged: Engine, given: list[dict[str, Any]], text: str
) -> None:
    request = {"ResourceArn": TABLE, "Tags": given}
    assert refusal(tagged, "TagResource", request) == text
    assert listed(tagged) == {"team": "data", "stage": ""}


def test_fifty_tags_fit_one_page(tagged: Engine) -> None:
    tagged.call(
        "TagResource", {"ResourceArn": TABLE, "Tags": tags(**{f"k{n}": "v" for n in range(48)})}
    )
    assert len(listed(tagged)) == 50


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ([], "Atleast one Tag Key needs to be provided as Input."),
        (["aws:foo"], "Tag Key cannot be prefixed with aws:, Key: aws:foo"),
        (
            [f"k{n}" for n in range(51)],
            "Number of Tags exceed the current limit for the provided ResourceArn",
        ),
    ],
)
def test_bad_keys_to_remove_are_refused(tagged: Engine, keys: list[str], text: str) -> None:
    assert refusal(tagged, "UntagResource", {"ResourceArn": TABLE, "TagKeys": keys}) == text


OPERATIONS: dict[str, dict[str, Any]] = {
    "TagResource": {"Tags": tags(a="b")},
    "UntagResource": {"TagKeys": ["a"]},
    "ListTagsOfResource": {},
}
ARNS = {
    "not-an-arn": f"{POVI}ARNs must start with 'arn:': not-an-arn",
    "arn:aws:s3:::bucket": (
        f"{POVI}Provided Arn is not a DynamoDB resource arn: arn:aws:s3:::bucket"
    ),
    f"{TABLE}/index/by-a": f"{POVI}Invalid resource arn provided, only table or stream is "
    f"accepted. Provided resource arn: {TABLE}/index/by-a",
    TABLE.replace(
        "us-east-1", "eu-west-2"
    ): "Invalid TableArn: Invalid ResourceArn provided as input "
    + TABLE.replace("us-east-1", "eu-west-2"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("arn", "text"), ARNS.items())
def test_a_bad_arn_is_refused(tagged: Engine, operation: str, arn: str, text: str) -> None:
    assert refusal(tagged, operation, {"ResourceArn": arn, **OPERATIONS[operation]}) == text


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_missing_or_foreign_table_is_refused(tagged: Engine, operation: str) -> None:
    ghost = {"ResourceArn": f"{ARN}ghost", **OPERATIONS[operation]}
    text = f"Requested resource not found: ResourceArn: {ARN}ghost not found"
    assert refusal(tagged, operation, ghost, ResourceNotFound) == text
    foreign = {
        "ResourceArn": TABLE.replace("123456789012", "000000000000"),
        **OPERATIONS[operation],
    }
    assert f"not authorized to perform: dynamodb:{operation}" in refusal(
        tagged, operation, foreign, AccessDenied
    )


def test_a_table_being_created_cannot_be_tagged(timed: Engine, clock: VirtualClock) -> None:
    timed.call("CreateTable", on_demand())
    request = {"ResourceArn": TABLE, "Tags": tags(a="b")}
    text = "Attempt to change a resource which is still in use: Table is being created: orders"
    assert refusal(timed, "TagResource", request, ResourceInUse) == text
    clock.advance(10)
    timed.call("TagResource", request)
