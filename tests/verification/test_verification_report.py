"""The report: which rows are wrong, and the same as JSON."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from stator.cli.verification_view import show_report
from stator.verification import ItemSize, PlaceUnits, VerificationReport, VerificationRow


def row(estimated: float, measured: float, *guesses: str) -> VerificationRow:
    return VerificationRow(
        pattern=f"p{estimated}",
        kind="read",
        estimated_units=estimated,
        measured_units=measured,
        places=(PlaceUnits("shop", estimated, measured),),
        items_read=3,
        items_returned=2,
        pages=1,
        requests=1,
        milliseconds=0.1,
        calls=3,
        items_stored=9,
        guesses=guesses,
    )


@pytest.mark.parametrize(
    ("estimated", "measured", "ok"),
    [(1, 1, True), (5, 4, True), (3, 4, True), (5.1, 4, False), (2.9, 4, False), (0, 0, True),
     (1, 0, False), (0, 1, False)],
)  # fmt: skip
def test_an_estimate_may_be_off_by_a_quarter(estimated: float, measured: float, ok: bool) -> None:
    assert row(estimated, measured).ok is ok


def test_a_report_is_ok_if_every_row_is() -> None:
    good = VerificationReport("shop", (row(1, 1),), 1_000, 9, 0.1)
    bad = VerificationReport("shop", (row(1, 1), row(2, 1)), 1_000, 18, 0.1)
    assert good.ok and not good.failed
    assert not bad.ok and [each.pattern for each in bad.failed] == ["p2"]
    assert bad.row("p2").off == 1


@pytest.mark.parametrize(
    ("estimated", "nearby", "ok"),
    [(3, (2, 3), True), (2.4, (2, 3), True), (4, (2, 3), False), (1, (1, 2), True),
     (3, None, False)],
)  # fmt: skip
def test_an_estimate_on_a_unit_boundary_is_not_wrong(
    estimated: float, nearby: tuple[float, float] | None, ok: bool
) -> None:
    found = replace(row(estimated, 2), nearby_units=nearby)
    report = VerificationReport("shop", (found,), 1_000, 9, 0.1)
    assert report.ok is ok
    assert found.is_on_boundary is (ok and abs(found.off) > 0.25)
    assert len(report.on_boundary) == found.is_on_boundary
    assert report.to_data()["patterns"][0]["on_boundary"] is found.is_on_boundary


def test_the_report_says_which_items_lie_on_a_boundary() -> None:
    found = replace(
        row(3, 2), kind="write", nearby_units=(2, 3), sizes=(ItemSize("Bill", 2_056, 2_046),)
    )
    out = io.StringIO()
    show_report(VerificationReport("shop", (found,), 1_000, 9, 0.1), Console(file=out, width=100))
    text = " ".join(out.getvalue().split())
    assert "the plan says 3 WCU a call, and the engine consumed 2" in text
    assert "within 1 % of a 1 KB boundary: Bill has 2,046 bytes measured, 2,056 in the plan" in text
    assert "with items 1 % smaller or larger, a call takes 2 to 3 WCU" in text
    assert "report it" not in text
    assert "no estimate is off by more than a quarter, but for unit boundaries" in text


def test_guesses_are_listed_once() -> None:
    report = VerificationReport("shop", (row(1, 1, "a", "b"), row(2, 2, "b")), 1_000, 18, 0.1)
    assert report.guesses == ("a", "b")


def test_json_has_everything() -> None:
    data = json.loads(VerificationReport("shop", (row(1, 0),), 1_000, 9, 0.1).to_json())
    assert data["ok"] is False
    [found] = data["patterns"]
    assert found["unit"] == "RCU" and found["off"] is None and found["ok"] is False
    assert found["places"] == [{"place": "shop", "estimated": 1, "measured": 0}]
