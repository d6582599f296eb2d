"""IAM policies: what a pattern does is allowed, and nothing else is."""

from __future__ import annotations

import fnmatch
import json
from typing import Any, Literal

import pytest

from stator.design.design import Design
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.export.iam import policy
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import creates, updates, write
from stator.errors import DesignError

from .sources import NAMES, sources


class Odd(Entity, key=("A*B?C$#{odd_id}", "X")):
    odd_id: str = ident()


@read(rps=1)
def odd(odd_id: str) -> Query[Odd]:
    return find(Odd).where(Odd.odd_id == odd_id)


class Letter(Entity):
    letter_id: str = ident()
    sender: str
    text: str


@read(rps=50)
def letter(letter_id: str) -> Query[Letter]:
    return find(Letter).where(Letter.letter_id == letter_id)


@read(rps=0.1)
def letters_from(sender: str) -> Query[Letter]:
    return find(Letter).where(Letter.sender == sender)


@write(rps=20)
def file_letter() -> object:
    return creates(Letter), updates(Letter.sender)


def statements(name: str, *patterns: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(policy(sources()[name].plan, patterns or None).text)[
        "Statement"
    ]
    return found


def test_a_get_is_allowed_on_the_table_and_its_prefix_only() -> None:
    assert statements("shop", "customer_by_id") == [
        {
            "Sid": "CustomerById",
            "Effect": "Allow",
            "Action": ["dynamodb:GetItem"],
            "Resource": "arn:aws:dynamodb:*:*:table/shop",
            "Condition": {
                "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["USER#*"]},
                "Null": {"dynamodb:LeadingKeys": "false"},
            },
        }
    ]


def test_a_query_of_an_index_is_allowed_on_the_index_and_not_on_the_table() -> None:
    [found] = statements("shop", "customer_by_email")
    assert found["Action"] == ["dynamodb:Query"]
    assert found["Resource"] == "arn:aws:dynamodb:*:*:table/shop/index/GSI1"
    assert found["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["EMAIL#*"]}}


def test_a_constant_key_is_named_whole() -> None:
    class Ticket(Entity, index={"ByState": ("STATE#{state}", "TICKET#{ticket_id}")}):
        ticket_id: str = ident()
        state: Literal["open", "closed"]

    @read(rps=1)
    def open_tickets() -> Query[Ticket]:
        return find(Ticket).where(Ticket.state == "open")

    plan = Design("desk", [Ticket], [open_tickets]).plan()
    [found] = json.loads(policy(plan, ["open_tickets"]).text)["Statement"]
    assert found["Condition"]["ForAllValues:StringLike"] == {"dynamodb:LeadingKeys": ["STATE#open"]}


def test_a_key_that_is_the_attribute_itself_has_no_prefix_to_keep_to() -> None:
    [found] = statements("shop", "count_open")
    assert "Condition" not in found


def test_a_transaction_is_its_writes_and_they_are_not_refused_for_want_of_a_leading_key() -> None:
    [found] = statements("shop", "place_order")
    assert found["Action"] == ["dynamodb:PutItem"]
    assert found["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["PURCHASE#*"]}
    }


def test_items_behind_an_index_of_keys_may_be_fetched() -> None:
    design = Design("post", [Letter], [letter, letters_from, file_letter], sizes={Letter: 60_000})
    plan = design.plan()
    assert plan.pattern("letters_from").steps[0].fetch
    found = json.loads(policy(plan, ["letters_from"]).text)["Statement"]
    assert [(each["Action"], each["Resource"].rpartition(":")[2]) for each in found] == [
        (["dynamodb:Query"], f"table/post/index/{plan.pattern('letters_from').index}"),
        (["dynamodb:BatchGetItem"], "table/post"),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_request_of_every_pattern_is_allowed_by_its_own_statements_only(name: str) -> None:
    plan = sources()[name].plan
    for pattern in plan.patterns:
        allowed = {
            (action, each["Resource"])
            for each in statements(name, pattern.name)
            for action in each["Action"]
        }
        for step in pattern.steps:
            place = step.table if step.index is None else f"{step.table}/index/{step.index}"
            assert (f"dynamodb:{step.operation}", f"arn:aws:dynamodb:*:*:table/{place}") in allowed
        assert len(allowed) <= 2 * len(pattern.steps)
        assert not any("*" in resource.rpartition("table/")[2] for _, resource in allowed)
        if pattern.kind == "read":
            assert {action for action, _ in allowed} <= {
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:BatchGetItem",
            }


@pytest.mark.parametrize("name", NAMES)
def test_the_leading_keys_of_example_items_pass_the_test(name: str) -> None:
    from stator.design.plan.example_items import item_of

    source = sources()[name]
    for pattern in source.plan.patterns:
        if pattern.kind != "write":
            continue
        for entity in source.design.entities:
            own = source.plan.entity(entity)
            if own.name not in {step.entities[0] for step in pattern.steps}:
                continue
            key = item_of(entity, own)[source.plan.table(own.table).partition]
            tests = [
                each.get("Condition")
                for each in statements(name, pattern.name)
                if "Query" not in str(each["Action"])
            ]
            assert any(test is None or _passes(test, str(key.get("S"))) for test in tests)


def _passes(condition: dict[str, Any], key: str) -> bool:
    [pattern] = condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    return fnmatch.fnmatchcase(key, pattern)


@pytest.mark.parametrize("name", NAMES)
def test_sids_are_letters_and_digits_and_differ(name: str) -> None:
    sids = [each["Sid"] for each in statements(name)]
    assert all(sid.isalnum() and sid.isascii() for sid in sids)
    assert len(set(sids)) == len(sids)


def test_wildcards_in_a_constant_stand_for_themselves() -> None:
    [found] = json.loads(policy(Design("odd", [Odd], [odd]).plan()).text)["Statement"]
    assert found["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"] == [
        "A${*}B${?}C${$}#*"
    ]


def test_region_and_account_narrow_the_arns() -> None:
    text = policy(
        sources()["shop"].plan, region="eu-west-1", account="111122223333", partition="aws-cn"
    ).text
    assert "arn:aws-cn:dynamodb:eu-west-1:111122223333:table/shop" in text
    assert ":*:*:" not in text


def test_guarded_writes_are_allowed_on_the_tables_if_asked_for() -> None:
    plan = sources()["shop"].plan
    without = json.loads(policy(plan).text)["Statement"]
    *same, added = json.loads(policy(plan, with_guarded_writes=True).text)["Statement"]
    assert same == without
    assert {"dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate"} < set(added["Action"])
    assert [each.rpartition("/")[2] for each in added["Resource"]] == [
        table.name for table in plan.tables
    ]


def test_a_policy_that_is_too_long_says_so() -> None:
    plan = sources()["shop"].plan
    assert policy(plan, ["customer_by_id"]).notes == ()
    long = policy(plan, [each.name for each in plan.patterns] * 3)
    assert "a managed policy may have 6,144" in long.notes[0]


def test_an_unknown_pattern_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DesignError, match="shop has no pattern nobody") as raised:
        policy(sources()["shop"].plan, ["nobody"])
    assert "customer_by_id" in str(raised.value.hint)
