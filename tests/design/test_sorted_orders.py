"""Orders that no key holds: small results sorted in memory, and orders of mixed directions."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from stator import (
    Design,
    Entity,
    Query,
    attr,
    creates,
    descending,
    distinct,
    find,
    ident,
    read,
    write,
)
from stator.design.plan.plan import Plan
from stator.errors import DesignError, PatternRefused
from stator.verification import verify


class Task(Entity):
    board: str = ident()
    task_id: str = ident()
    title: str
    rank: int
    due: date | None = None
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)


VOLUMES: Any = {Task: 100_000}
FEW = [distinct(Task.board, values=2_000)]


@write(rps=20)
def add() -> object:
    return creates(Task)


@read(rps=5)
def by_rank(board: str) -> Query[Task]:
    return find(Task).where(Task.board == board).order_by(Task.rank)


@read(rps=5)
def top_ten(board: str) -> Query[Task]:
    return find(Task).where(Task.board == board).order_by(Task.rank).limit(10)


@read(rps=5, paged=True)
def in_pages(board: str) -> Query[Task]:
    return find(Task).where(Task.board == board).order_by(Task.rank)


@read(rps=5)
def urgent(board: str) -> Query[Task]:
    mine = find(Task).where(Task.board == board)
    return mine.order_by(descending(Task.rank), Task.title).limit(10)


def board_plan(*reads: Any, facts: Any = FEW, **options: Any) -> Plan:
    return Design("board", [Task], [*reads, add], volumes=VOLUMES, facts=facts, **options).plan()


# --- in memory ------------------------------------------------------------------------------------


def test_a_small_whole_result_is_sorted_in_memory_and_needs_no_index() -> None:
    plan = board_plan(by_rank)
    pattern = plan.pattern("by_rank")
    assert plan.tables[0].indexes == ()
    assert pattern.in_memory
    assert pattern.reasons[-1] == (
        "sorted in memory by rank: a call returns about 50 items, all at once"
    )
    assert Plan.from_json(plan.to_json()) == plan
    design = Design("board", [Task], [by_rank, add], volumes=VOLUMES, facts=FEW)
    assert "sorted in memory" in str(by_rank("b").explain(design))


@pytest.mark.parametrize("pattern", [top_ten, in_pages])
def test_a_limit_and_pages_need_a_key_with_the_order(pattern: Any) -> None:
    planned = board_plan(pattern).pattern(pattern.name)
    assert not planned.in_memory
    assert planned.index is not None


@pytest.mark.parametrize(
    ("facts", "volumes"),
    [
        ([distinct(Task.board, values=20)], VOLUMES),  # 5,000 tasks on a board
        ([], VOLUMES),  # how many boards there are is a guess
        (FEW, {}),  # how many tasks there are is a guess
    ],
)
def test_a_large_or_guessed_result_is_never_planned_to_be_sorted(facts: Any, volumes: Any) -> None:
    if not volumes:
        facts = []
    design = Design("board", [Task], [by_rank, add], volumes=volumes, facts=facts)
    assert not design.plan().pattern("by_rank").in_memory


def test_large_items_are_not_sorted_in_memory() -> None:
    plan = board_plan(by_rank, sizes={Task: 100_000})  # 50 of them are 5 MB
    assert not plan.pattern("by_rank").in_memory


def test_an_index_that_is_there_anyway_holds_the_order() -> None:
    plan = board_plan(by_rank, top_ten)
    assert not plan.pattern("by_rank").in_memory
    assert plan.pattern("by_rank").index == plan.pattern("top_ten").index


def test_items_without_the_field_are_left_out_as_an_index_would() -> None:
    @read(rps=5)
    def by_due(board: str) -> Query[Task]:
        return find(Task).where(Task.board == board).newest_first(Task.due)

    step = board_plan(by_due).pattern("by_due").steps[0]
    assert step.in_memory
    assert step.filter is not None
    assert str(step.filter) == "attribute_exists(due)"


def test_a_lock_whose_index_holds_the_order_keeps_it() -> None:
    before = board_plan(in_pages)
    renamed = read(rps=5)(in_pages.function)
    design = Design("board", [Task], [renamed, add], volumes=VOLUMES, facts=FEW)
    assert design.plan().pattern("in_pages").in_memory
    design.keep_to(before)
    assert not design.plan().pattern("in_pages").in_memory, "programs may read it page by page"


def test_a_scan_that_is_allowed_is_sorted_too_but_only_as_a_whole() -> None:
    @read(rps=0.001, allow_scan=True)
    def every(word: str) -> Query[Task]:
        return find(Task).filter(attr(Task.title).contains(word)).order_by(Task.rank)

    step = Design("board", [Task], [every]).plan().pattern("every").steps[0]
    assert (step.operation, step.in_memory, step.order) == ("Scan", True, "rank")

    @read(rps=0.001, allow_scan=True)
    def some(word: str) -> Query[Task]:
        return find(Task).filter(attr(Task.title).contains(word)).order_by(Task.rank).limit(3)

    with pytest.raises(PatternRefused):
        Design("board", [Task], [some]).plan()


def test_the_estimate_of_a_sort_in_memory_is_measured() -> None:
    design = Design("board", [Task], [by_rank, urgent, add], volumes=VOLUMES, facts=FEW)
    report = verify(design, most_items=4_000)
    assert report.failed == ()


# --- mixed directions -----------------------------------------------------------------------------


def test_mixed_directions_invert_the_field_that_can_be() -> None:
    plan = board_plan(urgent)
    pattern = plan.pattern("urgent")
    [_, sort] = [key for key in plan.entity(Task).keys if key.index == pattern.index]
    inverted = [part.value for part in sort.template.parts if part.inverted]
    assert inverted == ["rank"], "a text cannot be inverted, a number can"
    assert pattern.steps[0].forward
    assert Plan.from_json(plan.to_json()) == plan
    design = Design("board", [Task], [urgent, add], volumes=VOLUMES, facts=FEW)
    design.keep_to(plan)
    assert design.plan() == plan


def test_the_whole_order_may_be_reversed_and_share_the_key() -> None:
    @read(rps=5)
    def least(board: str) -> Query[Task]:
        mine = find(Task).where(Task.board == board)
        return mine.order_by(descending(Task.rank), Task.title, descending=True).limit(10)

    plan = board_plan(urgent, least)
    assert len(plan.tables[0].indexes) == 1
    assert plan.pattern("urgent").steps[0].forward
    assert not plan.pattern("least").steps[0].forward


def test_a_range_of_an_inverted_field_is_a_range_of_the_key() -> None:
    @read(rps=5)
    def recent(board: str, since: datetime) -> Query[Task]:
        mine = find(Task).where(Task.board == board, Task.at >= since)
        return mine.order_by(descending(Task.at), Task.title).limit(10)

    plan = board_plan(recent)
    request = plan.pattern("recent").request(board="b", since=datetime(2026, 5, 1, tzinfo=UTC))
    assert "BETWEEN" in request["KeyConditionExpression"]
    assert request["ExpressionAttributeValues"][":k2"]["S"].startswith("TASK#7973-94-98")


def test_texts_in_mixed_directions_are_refused_by_name_or_sorted_in_memory() -> None:
    @read(rps=5)
    def limited(board: str) -> Query[Task]:
        mine = find(Task).where(Task.board == board)
        return mine.order_by(descending(Task.title), Task.task_id).limit(10)

    with pytest.raises(
        PatternRefused, match="orders by title descending and task_id ascending"
    ) as no:
        board_plan(limited)
    assert "leave out the limit" in str(no.value.hint)

    @read(rps=5)
    def whole(board: str) -> Query[Task]:
        mine = find(Task).where(Task.board == board)
        return mine.order_by(descending(Task.title), Task.task_id)

    assert board_plan(whole).pattern("whole").steps[0].descending == ("title",)


def test_one_direction_is_no_mixed_order() -> None:
    @read(rps=5)
    def both_down(board: str) -> Query[Task]:
        mine = find(Task).where(Task.board == board)
        return mine.order_by(descending(Task.rank), descending(Task.title)).limit(10)

    step = board_plan(both_down).pattern("both_down").steps[0]
    assert (step.forward, step.descending) == (False, ())


def test_what_cannot_descend_is_refused() -> None:
    with pytest.raises(DesignError, match="is not a field"):
        descending("rank")
    with pytest.raises(DesignError, match="names a field twice"):
        find(Task).order_by(descending(Task.rank), Task.rank)


def test_an_index_that_is_needed_anyway_holds_the_order_so_that_pages_can_be_read() -> None:
    class Buyer(Entity):
        buyer_id: str = ident()

    class Sale(Entity):
        sale_id: str = ident()
        buyer_id: str
        sold_at: datetime

    @read(rps=120, returns=25)
    def sales_of(buyer_id: str) -> Query[Sale]:
        return find(Sale).where(Sale.buyer_id == buyer_id).newest_first(Sale.sold_at)

    volumes = {Buyer: 200_000, Sale: 5_000_000_000}
    design = Design("shop", [Buyer, Sale], [sales_of], volumes=volumes)
    pattern = design.plan().pattern("sales_of")
    assert pattern.index is not None and not pattern.in_memory
