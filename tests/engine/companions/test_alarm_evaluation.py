"""The state that points lead to: the tables of the CloudWatch User Guide, and the reasons' texts.

In a picture of points the newest is on the right: 0 is a point within the threshold, X breaches it,
and - is missing.
"""

from __future__ import annotations

import pytest

from stator.engine.companions.cloudwatch.alarms.evaluation import AlarmRule, Verdict, judge

KEPT = None
TREATMENTS = ("missing", "ignore", "breaching", "notBreaching")
# 1 September 2023, 14:02:00 UTC
NEWEST = 1_693_576_920


def verdict(
    picture: str, needed: int, missing: str, *, periods: int = 3, current: str = "OK"
) -> Verdict:
    rule = AlarmRule(periods, needed, "GreaterThanThreshold", 42.0, missing)
    values = {"0": 1.0, "X": 50.0, "-": None}
    points = [(NEWEST - 60 * at, values[sign]) for at, sign in enumerate(reversed(picture.split()))]
    return judge(rule, points, current)


@pytest.mark.parametrize(
    ("picture", "needed", "states"),
    [
        ("0 - X - X", 3, ("OK", "OK", "OK", "OK")),
        ("0 - - - -", 3, ("OK", "OK", "OK", "OK")),
        ("- - - - -", 3, ("INSUFFICIENT_DATA", KEPT, "ALARM", "OK")),
        ("0 X X - X", 3, ("ALARM", "ALARM", "ALARM", "ALARM")),
        ("- - X - -", 3, ("ALARM", KEPT, "ALARM", "OK")),
        ("0 - X - X", 2, ("ALARM", "ALARM", "ALARM", "ALARM")),
        ("0 0 X 0 X", 2, ("ALARM", "ALARM", "ALARM", "ALARM")),
        ("0 - X - -", 2, ("OK", "OK", "ALARM", "OK")),
        ("- - - - 0", 2, ("OK", "OK", "ALARM", "OK")),
        ("- - - X -", 2, ("ALARM", KEPT, "ALARM", "OK")),
        # not in the guide: one new point that breaches is not old enough, and none is within
        ("- - - - X", 2, (KEPT, KEPT, "ALARM", "OK")),
    ],
)
def test_missing_points_are_treated_as_in_the_guide(
    picture: str, needed: int, states: tuple[str | None, ...]
) -> None:
    found = tuple(verdict(picture, needed, treatment).state for treatment in TREATMENTS)
    assert found == states


@pytest.mark.parametrize(
    ("comparison", "below", "at", "above"),
    [
        ("GreaterThanThreshold", "OK", "OK", "ALARM"),
        ("GreaterThanOrEqualToThreshold", "OK", "ALARM", "ALARM"),
        ("LessThanThreshold", "ALARM", "OK", "OK"),
        ("LessThanOrEqualToThreshold", "ALARM", "ALARM", "OK"),
    ],
)
def test_comparisons(comparison: str, below: str, at: str, above: str) -> None:
    rule = AlarmRule(1, 1, comparison, 5.0, "missing")
    found = [judge(rule, [(NEWEST, value)], "OK").state for value in (4.0, 5.0, 6.0)]
    assert found == [below, at, above]


def test_the_reason_is_worded_as_recorded_on_aws() -> None:
    rule = AlarmRule(2, 2, "GreaterThanThreshold", 42.0, "missing")
    found = judge(rule, [(NEWEST, 0.0), (NEWEST - 60, 1.0)], "ALARM")
    assert found.reason == (
        "Threshold Crossed: 2 datapoints [0.0 (01/09/23 14:02:00), 1.0 (01/09/23 14:01:00)] were "
        "not greater than the threshold (42.0)."
    )


def test_the_reasons_of_m_out_of_n_and_of_missing_points() -> None:
    assert verdict("0 X X", 2, "missing").reason == (
        "Threshold Crossed: 2 out of the last 3 datapoints [50.0 (01/09/23 14:02:00), 50.0 "
        "(01/09/23 14:01:00)] were greater than the threshold (42.0) (minimum 2 datapoints for OK "
        "-> ALARM transition)."
    )
    assert verdict("- - -", 3, "missing").reason == (
        "Insufficient Data: 3 datapoints were unknown."
    )
    assert verdict("- - -", 3, "notBreaching").reason == (
        "Threshold Crossed: no datapoints were received for 3 periods and 3 missing datapoints "
        "were treated as [NonBreaching]."
    )
