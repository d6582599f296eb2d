"""What an item counts for: the short ways give what the long ones would."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stator import Engine, connect
from stator.errors import DesignError
from stator.model.periods import PERIODS, Period, period_text
from stator.pipeline import View, avg, count, percentiles, sum_of
from stator.pipeline.views.rebuild.tally import BaseTally, digests
from stator.pipeline.views.sources import ItemShare, ViewSource

from .fleet import Test, fleet


def source_of(view: View) -> ViewSource:
    with Engine.open() as engine, connect(fleet, engine) as db:
        return view.in_database(db.context).source


SOURCES = {
    period: source_of(
        View(
            "x",
            of=Test,
            by=[Test.isp],
            bucket=(Test.at, period),
            mean=avg(Test.latency_ms),
            size=sum_of(Test.size),
        )
    )
    for period in PERIODS
}


def item(at: Any, *, isp: Any = None, latency: Any = None) -> dict[str, Any]:
    return {
        "test_id": {"S": "t"},
        "isp": isp or {"S": "acme"},
        "at": at,
        "latency_ms": latency or {"N": "12.5"},
        "size": {"N": "3"},
    }


def counted(source: ViewSource, item: dict[str, Any]) -> ItemShare:
    found = source.counted(of_the_entity(source, item), "", 0.0)
    assert found is not None
    return found


def of_the_entity(source: ViewSource, item: dict[str, Any]) -> dict[str, Any]:
    discriminator = source.of.plan.discriminator
    return item if discriminator is None else item | {discriminator: {"S": "Test"}}


moments = st.datetimes(
    timezones=st.just(UTC), min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)
)


@pytest.mark.parametrize("period", PERIODS)
@given(moment=moments, zone=st.integers(-12, 12), shape=st.sampled_from(["written", "iso", "zone"]))
def test_a_time_is_in_its_bucket_however_it_was_written(
    period: Period, moment: datetime, zone: int, shape: str
) -> None:
    text = {
        "written": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "iso": moment.isoformat(),
        "zone": moment.astimezone(timezone(timedelta(hours=zone))).isoformat(),
    }[shape]
    for _ in range(2):  # the second time its hour is known
        assert counted(SOURCES[period], item({"S": text})).group == (
            "acme",
            period_text(period, moment),
        )


@given(
    at=st.from_regex(
        r"2026-1[0-9]-[0-3][0-9]T[0-2][0-9]:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z", fullmatch=True
    )
)
@example(at="2026-11-16T10:61:00.000000Z")
@example(at="2026-11-16T10:00:00.000000z")
def test_what_is_no_time_is_refused_also_in_an_hour_that_is_known(at: str) -> None:
    source = SOURCES["hour"]
    counted(source, item({"S": "2026-11-16T10:00:00.000000Z"}))
    try:
        expected = datetime.fromisoformat(at)
    except ValueError:
        with pytest.raises(DesignError):
            counted(source, item({"S": at}))
    else:
        assert counted(source, item({"S": at})).group.bucket == period_text("hour", expected)


@given(st.from_regex(r"-?[0-9]{1,5}(\.[0-9]{1,3})?", fullmatch=True))
def test_a_value_adds_the_same_each_time(text: str) -> None:
    parts = {"n": 1, "s:mean": Decimal(repr(float(text))), "c:mean": 1, "s:size": 3}
    for _ in range(2):
        assert (
            dict(
                counted(
                    SOURCES["day"], item({"S": "2026-11-16T10:00:00Z"}, latency={"N": text})
                ).sums
            )
            == parts
        )


def test_what_is_known_of_a_text_is_not_believed_of_another_type() -> None:
    source = source_of(
        View("x", of=Test, by=[Test.isp], tests=count(), spread=percentiles(Test.latency_ms))
    )
    at = {"S": "2026-11-16T10:00:00Z"}
    counted(source, item(at, isp={"S": "5"}, latency={"N": "5"}))
    with pytest.raises(DesignError):
        counted(source, item(at, isp={"N": "5"}))
    with pytest.raises(DesignError):
        counted(source, item(at, latency={"S": "5"}))


def test_a_tally_counts_what_was_there_at_the_start() -> None:
    """Whatever the scan saw of a key that changes, before it is counted or after."""
    source = source_of(View("x", of=Test, by=[Test.isp], size=sum_of(Test.size)))
    tally = BaseTally("x", source)

    def sized(name: str, size: int) -> dict[str, Any]:
        made = item({"S": "2026-11-16T10:00:00Z"}) | {
            "test_id": {"S": name},
            "size": {"N": str(size)},
        }
        return of_the_entity(source, made)

    def key(name: str) -> int:
        return digests([{"test_id": {"S": name}}], ["test_id"])[0]

    tally.take(
        [sized("still", 1), sized("counted, then changed", 10)],
        [key("still"), key("counted, then changed")],
        [],
        1.0,
    )
    tally.count(1.0)
    tally.take([sized("changed, then scanned", 999)], [key("changed, then scanned")], [], 2.0)
    tally.see(key("changed, then scanned"), sized("changed, then scanned", 100), "", 2.0)
    tally.see(key("changed, then scanned"), sized("changed, then scanned", 999), "", 2.0)
    tally.see(key("counted, then changed"), sized("counted, then changed", 10), "", 2.0)
    tally.see(key("gone before the scan"), sized("gone before the scan", 1000), "", 2.0)
    tally.see(key("new"), None, "", 2.0)
    tally.count(float("inf"))
    tally.count_dirty()
    assert tally.sums == {("acme", "ALL"): {"n": 4, "s:size": 1111}}
    assert tally.changed == 4
