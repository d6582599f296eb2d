"""The archive: an order is in the table or in a file, after every crash and every race."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from archive import Order, archive_day, finished_on, load_archive, write_file
from archive import shop as orders

from stator import Db, connect
from stator.testing import kill_points
from tests.targets import Target

DAY = datetime(2026, 8, 5, 12, 30, 15, 250_000, tzinfo=UTC)
TEXT = "2026-08-05"


def fill(db: Db, finished: int = 5) -> dict[str, Order]:
    """Five finished orders of the day, one of the next day, one that is not finished."""
    found = [
        Order(order_id=f"o{n}", customer_id="c", total=Decimal(n) / 100, finished_at=DAY)
        for n in range(finished)
    ]
    found.append(
        Order(
            order_id="next",
            customer_id="c",
            total=Decimal(1),
            finished_at=datetime(2026, 8, 6, tzinfo=UTC),
        )
    )
    found.append(Order(order_id="open", customer_id="c", total=Decimal(1)))
    return {each.order_id: db.create(each) for each in found}


def stored(db: Db) -> set[str]:
    return {each.order_id for each in db.scan(Order, allow=True, consistent=True)}


def test_the_orders_of_a_day_move_with_all_their_values(target: Target, tmp_path: Path) -> None:
    db = target.connect(orders)
    before = fill(db)
    assert archive_day(db, TEXT, tmp_path) == 5
    assert stored(db) == {"next", "open"}
    assert load_archive(tmp_path) == {f"o{n}": before[f"o{n}"] for n in range(5)}
    assert archive_day(db, TEXT, tmp_path) == 0
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def test_an_order_that_changes_meanwhile_stays_and_is_archived_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(orders) as db:
        fill(db)

        def change_then_write(found: list[Order], folder: Path) -> Path:
            with db.update(Order, order_id="o2") as order:
                order.total = Decimal("99.99")
            return write_file(found, folder)

        with monkeypatch.context() as patched:
            patched.setattr("archive.write_file", change_then_write)
            assert archive_day(db, TEXT, tmp_path) == 4
        assert stored(db) == {"o2", "next", "open"}
        assert archive_day(db, TEXT, tmp_path) == 1
        assert stored(db) == {"next", "open"}
        archived = load_archive(tmp_path)
        assert archived["o2"].total == Decimal("99.99")
        assert len(archived) == 5


def test_a_program_that_is_killed_loses_no_order_and_can_start_again(tmp_path: Path) -> None:
    with connect(orders) as db:
        before = fill(db)
        for point in kill_points(db, lambda db: archive_day(db, TEXT, tmp_path)):
            assert stored(db) | load_archive(tmp_path).keys() == before.keys(), point
        assert stored(db) == {"next", "open"}
        assert load_archive(tmp_path) == {f"o{n}": before[f"o{n}"] for n in range(5)}


def test_a_value_that_the_file_cannot_hold_deletes_nothing(tmp_path: Path) -> None:
    with connect(orders) as db:
        fill(db)
        db.create(Order(order_id="odd", customer_id="c", total=Decimal("0.001"), finished_at=DAY))
        with pytest.raises(ValueError, match="data loss"):
            archive_day(db, TEXT, tmp_path)
        assert db.count(finished_on(TEXT)) == 6
        assert load_archive(tmp_path) == {}
