"""What holds for every workload: no more than the limits is admitted, and nothing less."""

from __future__ import annotations

import random

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.model.heat.limits import BURST_SECONDS, PARTITION_UNITS, READ, WRITE
from stator.model.heat.resource import ThroughputResource, ThroughputSettings

from .driving import START, key
from .oracle import HeatOracle

# Times are multiples of an eighth of a second and units of a half, which floats hold exactly.
UNITS = st.sampled_from([1.0, 0.5, 2.0, 7.0, 40.0, 400.0, 1500.0])
KEYS = st.one_of(
    st.just(key("hot", "1")),
    st.sampled_from([key("hot", str(number)) for number in range(6)]),
    st.integers(0, 30).map(lambda number: key(f"k{number}")),
)
PAUSES = st.one_of(
    st.just(0.0),
    st.just(0.0),
    st.integers(1, 24).map(lambda eighths: eighths / 8),
    st.integers(1, 8_000).map(lambda eighths: eighths / 8),
)
REQUESTS = st.lists(
    st.tuples(PAUSES, KEYS, UNITS, st.sampled_from([READ, WRITE])), min_size=1, max_size=120
)
RATES = st.one_of(st.integers(1, 12), st.integers(1, 4_000))
SETTINGS = st.one_of(
    st.just(ThroughputSettings()),
    st.builds(lambda read, write: ThroughputSettings(units=(read, write)), RATES, RATES),
    st.builds(
        lambda read, write, burst: ThroughputSettings(
            units=(read, write), initial_burst_seconds=burst
        ),
        RATES,
        RATES,
        st.sampled_from([0.0, 60.0, 300.0]),
    ),
    st.builds(lambda read, write: ThroughputSettings(maxima=(read, write)), RATES, RATES),
    st.builds(lambda read, write: ThroughputSettings(quota=(read, write)), RATES, RATES),
    st.builds(
        lambda write, quota: ThroughputSettings(maxima=(None, write), quota=quota),
        RATES,
        st.tuples(RATES, RATES),
    ),
)
Told = list[tuple[float, bytes, float, int, bool]]


def run(resource: ThroughputResource, requests: list[tuple[float, bytes, float, int]]) -> Told:
    """Send requests, each after its pause, and return which passed. The oracle must agree."""
    now = START
    told = []
    oracle = HeatOracle(resource.settings, START, resource.lows)
    for pause, wanted, units, kind in requests:
        now += pause
        room = resource.room(kind, wanted, now)
        if resource.lows != sorted(oracle.by_partition):
            oracle.follow(resource.lows)
        causes = resource.causes(kind, wanted, now)
        assert [cause.limit for cause in causes] == oracle.limits(kind, wanted, now)
        passed = resource.admit(kind, wanted, units, now)
        assert passed == (room > 0) == (not causes)
        if passed:
            oracle.take(kind, wanted, units, now)
        else:
            resource.refuse(kind, wanted, units, causes, now)
        told.append((now, wanted, units, kind, passed))
    return told


def check_windows(admitted: list[tuple[float, float]], rate: float, burst: float) -> None:
    """In every window, at most the rate, the burst and one request beyond them is admitted."""
    for first, (begun, _) in enumerate(admitted):
        total = 0.0
        for at, units in admitted[first:]:
            total += units
            assert total <= rate * (at - begun) + burst + units


@given(SETTINGS, REQUESTS)
@settings(max_examples=300)
def test_requests_pass_exactly_while_every_level_is_above_zero(
    chosen: ThroughputSettings, requests: list[tuple[float, bytes, float, int]]
) -> None:
    run(ThroughputResource(chosen, START), requests)


@given(
    SETTINGS,
    st.lists(
        st.tuples(st.booleans(), KEYS, st.sampled_from([READ, WRITE])), min_size=1, max_size=4
    ),
    st.integers(120, 700),
)
@settings(max_examples=25)
def test_the_oracle_agrees_while_hot_partitions_split(
    chosen: ThroughputSettings, hot: list[tuple[bool, bytes, int]], seconds: int
) -> None:
    """Minutes of load on few keys: partitions split, and the parts owe what the whole owed."""
    requests: list[tuple[float, bytes, float, int]] = []
    for second in range(0, seconds, 2):
        for at, (heavy, wanted, kind) in enumerate(hot):
            sort = str(second * 7 % 10).encode()
            units = 3_000.0 if heavy else 700.0
            requests.append((2.0 if at == 0 else 0.0, wanted + sort, units, kind))
    run(ThroughputResource(chosen, START), requests)


@given(SETTINGS, REQUESTS)
@settings(max_examples=300)
def test_no_more_is_admitted_than_rate_times_time_plus_burst_plus_one_request(
    chosen: ThroughputSettings, requests: list[tuple[float, bytes, float, int]]
) -> None:
    told = run(ThroughputResource(chosen, START), requests)
    for kind in (READ, WRITE):
        admitted = [(at, units) for at, _, units, k, passed in told if k == kind and passed]
        if chosen.units is not None:
            rate = chosen.units[kind]
            check_windows(admitted, rate, rate * BURST_SECONDS)
            continue
        check_windows(admitted, chosen.quota[kind], chosen.quota[kind])
        maximum = chosen.maxima[kind]
        if maximum is not None:
            check_windows(admitted, maximum, maximum * BURST_SECONDS)


@given(REQUESTS)
@settings(max_examples=200)
def test_a_partition_admits_its_limit_each_second_and_one_request(
    requests: list[tuple[float, bytes, float, int]],
) -> None:
    resource = ThroughputResource(ThroughputSettings(), START)
    told = run(resource, [(min(pause, 0.125), *rest) for pause, *rest in requests])  # type: ignore[misc]
    for kind in (READ, WRITE):
        for partition in resource.partitions:
            served = [
                (float(int(at)), units)
                for at, wanted, units, k, passed in told
                if k == kind and passed and resource.partition_of(wanted) is partition
            ]
            check_windows(served, PARTITION_UNITS[kind], PARTITION_UNITS[kind])


@given(SETTINGS, REQUESTS)
@settings(max_examples=100)
def test_equal_requests_give_equal_runs(
    chosen: ThroughputSettings, requests: list[tuple[float, bytes, float, int]]
) -> None:
    first, second = (ThroughputResource(chosen, START) for _ in range(2))
    assert run(first, requests) == run(second, requests)
    end = START + 200_000.0
    assert first.to_json(end) == second.to_json(end)


@given(SETTINGS, REQUESTS, st.integers(0, 119))
@settings(max_examples=100)
def test_a_restart_at_any_moment_changes_no_level(
    chosen: ThroughputSettings, requests: list[tuple[float, bytes, float, int]], place: int
) -> None:
    """Only what a partition has used of its current second is lost."""
    before, after = requests[:place], requests[place:]
    first = ThroughputResource(chosen, START)
    now = run(first, before)[-1][0] if before else START
    again = ThroughputResource(chosen, now)
    again.restore(orjson.loads(orjson.dumps(first.to_json(now))), now)
    assert again.lows == first.lows
    for pause, wanted, _, kind in after:
        now += pause
        assert again.tightest_limit(kind, now) == first.tightest_limit(kind, now)
        assert again.lows == first.lows, wanted


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=12)
def test_partitions_always_cover_every_key_once(seed: int, has_local_index: bool) -> None:
    chance = random.Random(seed)
    resource = ThroughputResource(ThroughputSettings(has_local_index=has_local_index), START)
    now = START
    hot = key("hot")
    for _ in range(900):
        now += 1.0
        for wanted in (hot, key(f"k{chance.randrange(40)}"), key("p", f"{chance.random():.6f}")):
            units = float(chance.randrange(2000))
            if not resource.admit(WRITE, wanted, units, now):
                resource.refuse(WRITE, wanted, units, resource.causes(WRITE, wanted, now), now)
    lows = [partition.low for partition in resource.partitions]
    assert lows == sorted(set(lows)) == resource.lows
    assert lows[0] == b""
    for number in range(200):
        wanted = key(f"any{number}")
        low, high = resource.bounds_of(wanted)
        assert low <= wanted
        assert high is None or wanted < high
        assert resource.partition_of(wanted).low == low
    if has_local_index:
        assert all(len(low) <= 8 for low in lows), "a collection was cut"
