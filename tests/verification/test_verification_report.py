"""The report: which rows are wrong, and the same as JSON."""

from __future__ import annotations

import json

import pytest

from stator.verification import PlaceUnits, VerificationReport, VerificationRow


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


def test_guesses_are_listed_once() -> None:
    report = VerificationReport("shop", (row(1, 1, "a", "b"), row(2, 2, "b")), 1_000, 18, 0.1)
    assert report.guesses == ("a", "b")


def test_json_has_everything() -> None:
    data = json.loads(VerificationReport("shop", (row(1, 0),), 1_000, 9, 0.1).to_json())
    assert data["ok"] is False
    [found] = data["patterns"]
    assert found["unit"] == "RCU" and found["off"] is None and found["ok"] is False
    assert found["places"] == [{"place": "shop", "estimated": 1, "measured": 0}]
