"""``stator simulate`` as people run it: in a folder, with options, and with mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from stator.cli.design_file import load_design
from stator.cli.simulation import traffic_options
from stator.cli.simulation.simulation_view import show_simulation
from stator.design.documents import heat_page
from stator.design.simulation import (
    Launch,
    MeasuredTraffic,
    SimulatedLoad,
    Spike,
    TrafficShape,
    ZipfKeys,
)

from .design_folder import DESIGN, stator_in

HOT = """
from stator import Design, Entity, creates, ident, updates, write


class Product(Entity):
    sku: str = ident()
    stock: int = 0


@write(rps=1500)
def take() -> object:
    return updates(Product.stock)


@write(rps=1)
def add() -> object:
    return creates(Product)


store = Design("store", [Product], [take, add], volumes={Product: 10_000})
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "store.py").write_text(HOT)
    return tmp_path


def test_a_pattern_that_is_never_called_is_not_said_to_be_served(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(DESIGN)
    name = load_design(str(tmp_path / "shop.py")).plan().patterns[0].name
    window = f"{name}=02:00-03:00"
    done = stator_in(tmp_path, "simulate", "--window", window, "--minutes", "60", "--fail")
    assert done.returncode == 1
    assert done.stdout.startswith(f"shop  60 minutes of traffic: never called: {name}")
    assert "not called" in done.stdout and "served in the end" not in done.stdout


def test_a_quiet_design_is_served(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(DESIGN)
    done = stator_in(tmp_path, "simulate", "--fail")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("shop  60 minutes of traffic: every pattern is served in the end")
    assert "place_order" in done.stdout
    assert "Why calls are refused" not in done.stdout


def test_a_hot_key_is_named_with_its_cure_within_eighty_columns(folder: Path) -> None:
    done = stator_in(folder, "simulate", "--hot", "take=0.9", "--minutes", "10", columns=80)
    assert done.returncode == 0
    assert "1 of 2 patterns not served" in done.stdout
    for text in (
        "TableWriteKeyRangeThroughputExceeded",
        "SKU#sku-1 of store: 1,350 write units a second of 1,000",
        "spread each key of Product over 2 shards (simulated: healthy)",
        "hot, but not split: one key takes the load",
        "████████",
    ):
        assert text in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout


def test_colours_are_for_terminals(folder: Path) -> None:
    design = load_design(str(folder / "store.py"))
    found = design.simulate(traffic_shape("take=0.9"))
    console = Console(force_terminal=True, width=80, color_system="standard", highlight=False)
    with console.capture() as captured:
        show_simulation(found, console)
    assert "\x1b[31m█" in captured.get()


def traffic_shape(hot: str) -> TrafficShape:
    return TrafficShape(minutes=10, hot=traffic_options.hot_keys([hot]))


def test_fail_is_for_scripts(folder: Path) -> None:
    options = ("simulate", "--hot", "take=0.9", "--minutes", "5")
    assert stator_in(folder, *options).returncode == 0
    assert stator_in(folder, *options, "--fail").returncode == 1
    assert stator_in(folder, *options, "--fail", "--shards", "Product=2").returncode in (0, 1)


def test_json_has_what_the_text_shows(folder: Path) -> None:
    options = ("simulate", "--json", "--hot", "take=0.9", "--minutes", "10")
    done = stator_in(folder, *options)
    data = json.loads(done.stdout)
    [take] = [each for each in data["patterns"] if each["name"] == "take"]
    assert data["ok"] is False
    assert take["refused_share"] == pytest.approx(0.25, abs=0.02)
    assert take["healthy_after_minutes"] is None
    assert take["hottest_key"]["units_per_second"] == pytest.approx(1350, abs=0.1)
    assert take["cure"]["shards"] == 2
    assert take["cure"]["verified"] is True
    [store] = data["places"]
    assert {len(row) for row in store["heat"]} == {60}
    assert stator_in(folder, *options).stdout == done.stdout


def test_a_page_has_a_map_of_each_table_and_no_scripts(folder: Path) -> None:
    done = stator_in(
        folder, "simulate", "--hot", "take=0.9", "--minutes", "5", "--html", "heat.html"
    )
    assert done.stderr == "wrote heat.html\n"
    page = (folder / "heat.html").read_text()
    assert page.startswith("<!doctype html>")
    assert '<svg class="heat"' in page and 'class="short"' in page
    assert "TableWriteKeyRangeThroughputExceeded" in page
    assert "<script" not in page and "http" not in page


def test_names_are_escaped_in_the_page(folder: Path) -> None:
    design = load_design(str(folder / "store.py"))
    rows = [{"time": second, "pattern": "take", "sku": "<b>", "count": 9} for second in range(60)]
    page = heat_page(design.simulate(measured=MeasuredTraffic(rows)))
    assert "SKU#&lt;b&gt;" in page and "<b>" not in page


def test_measured_traffic_is_replayed(folder: Path) -> None:
    rows = ["time,pattern,sku,count"]
    rows += [f"10:0{second // 60}:{second % 60:02d},take,tea,1200" for second in range(120)]
    (folder / "calls.csv").write_text("\n".join(rows))
    done = stator_in(folder, "simulate", "--replay", "calls.csv")
    assert done.stdout.startswith("store  2 minutes of traffic")
    assert "SKU#tea of store: 1,200 write units a second of 1,000" in done.stdout


def test_a_load_says_how_long_it_takes(folder: Path) -> None:
    options = ("simulate", "--minutes", "15", "--load", "Product=300_000@3000")
    ordered = stator_in(folder, *options).stdout
    assert "load the items in shuffled order" in ordered
    assert "The load of 300,000 items of Product took" in ordered
    assert "it takes 1 min 40 s if" in ordered
    done = stator_in(folder, *options, "--shuffle", "--json")
    [load] = json.loads(done.stdout)["loads"]
    assert load["seconds"] == pytest.approx(100, abs=30)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--spike", "take=10@00:10"), "write it like --spike place_order=10x@00:10+5m"),
        (("--spike", "take=10x@25:10+5m"), "--spike take=10x@25:10+5m is not understood"),
        (("--window", "take=2-3"), "--window nightly_report=02:00-03:00"),
        (("--launch", "fast"), "--launch 5x+15m"),
        (("--load", "Product"), "--load Order=1000000@5000"),
        (("--hot", "take"), "--hot orders_of_user=0.3"),
        (("--zipf", "take=a"), "--zipf orders_of_user=1.0"),
        (("--shards", "Product=many"), "--shards Order=8"),
        (("--warm", "5"), "--warm 12000,4000"),
        (("--start", "noon"), "--start 09:30"),
        (("--shuffle",), "--shuffle needs --load"),
        (("--replay", "x.csv", "--launch", "2x+5m"), "leave out --profile"),
        (("--seed", "-1"), "--seed"),
    ],
)
def test_a_text_that_is_not_understood_is_wrong_usage(
    folder: Path, options: tuple[str, ...], message: str
) -> None:
    done = stator_in(folder, "simulate", *options)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--hot", "sell=0.5"), "the design has no pattern sell"),
        (("--hot", "take=1.5"), "the share of the hot key of take is 1.5"),
        (("--shards", "Order=2"), "the design has no entity Order"),
        (("--shards", "Product=0"), "shards of Product: 0"),
        (("--minutes", "0.5"), "minutes=0.5"),
        (("--replay", "missing.csv"), "cannot read missing.csv"),
        (("--html", "no/heat.html"), "cannot write no/heat.html"),
    ],
)
def test_an_impossible_value_is_an_error_with_a_hint(
    folder: Path, options: tuple[str, ...], message: str
) -> None:
    done = stator_in(folder, "simulate", *options)
    assert done.returncode == 1
    assert f"error: {message}" in done.stderr
    assert "hint: " in done.stderr


def test_options_are_read_as_they_are_documented() -> None:
    assert traffic_options.spikes([traffic_options.SPIKE_EXAMPLE]) == (
        Spike("place_order", 10, 600, 300),
    )
    assert traffic_options.launch(traffic_options.LAUNCH_EXAMPLE) == Launch(5, 900)
    assert traffic_options.loads(["Order=1_000_000@5000"], is_shuffled=True) == (
        SimulatedLoad("Order", 1_000_000, 5000, is_shuffled=True),
    )
    assert traffic_options.zipf_keys(["writes of Order=1.2"]) == (ZipfKeys("writes of Order", 1.2),)
    assert traffic_options.shards(["Order=8"]) == {"Order": 8}
    assert traffic_options.units("--warm", "12000,4000") == (12000, 4000)
    assert traffic_options.time_of_day("--start", "09:30:05") == 34_205
    assert traffic_options.windows([traffic_options.WINDOW_EXAMPLE])[0].end == 3 * 3600
