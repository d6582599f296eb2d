"""``stator cost`` as people run it: in a folder, with a lock file in git, and with mistakes."""

from __future__ import annotations

import json
from decimal import Decimal
from importlib import resources
from pathlib import Path

import pytest

from stator.cli.design_file import load_design
from stator.design.plan.lock_file import lock_path, write_lock

from .design_folder import DESIGN, git, stator_in, with_email


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(DESIGN)
    return tmp_path


@pytest.fixture
def committed(folder: Path) -> Path:
    """The lock file of the design is in the first commit; the design has one pattern more since."""
    write_lock(lock_path("shop", folder), load_design(str(folder / "shop.py")).plan())
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    (folder / "shop.py").write_text(with_email())
    return folder


def test_the_design_in_the_folder_is_priced(folder: Path) -> None:
    done = stator_in(folder, "cost")
    assert (done.returncode, done.stderr) == (0, "")
    first, second, *_ = done.stdout.splitlines()
    assert first.startswith("shop  $") and first.endswith(" a month")
    assert second.startswith("on-demand, with point-in-time recovery, us-east-1 (US East")
    for name in (
        "user_by_id",
        "orders_of_user",
        "place_order",
        "User",
        "Order",
        "(storage)",
        "provisioned at 70%",
    ):
        assert name in done.stdout


def test_other_prices_can_be_given(folder: Path) -> None:
    document = json.loads(
        resources.files("stator.design.cost.prices").joinpath("2026-09-11.json").read_text()
    )
    document["as_of"] = "2027-01-01"
    virginia = document["regions"]["us-east-1"]["prices"]
    for price in virginia.values():
        price["usd"] = str(2 * Decimal(price["usd"]))
    (folder / "prices.json").write_text(json.dumps(document))
    usual, doubled = (
        json.loads(stator_in(folder, "cost", "--json", *more).stdout)
        for more in ([], ["--prices", "prices.json"])
    )
    assert doubled["dollars_per_month"] == pytest.approx(2 * usual["dollars_per_month"])
    assert "prices of 2027-01-01" in stator_in(folder, "cost", "--prices", "prices.json").stdout
    for content in ("{", "[]", '{"as_of": "today"}'):
        (folder / "prices.json").write_text(content)
        refused = stator_in(folder, "cost", "--prices", "prices.json")
        assert refused.returncode == 1 and "prices.json is not a price file" in refused.stderr


@pytest.mark.parametrize("columns", [80, 120])
def test_it_fits_the_terminal(folder: Path, columns: int) -> None:
    done = stator_in(folder, "cost", columns=columns)
    assert max(map(len, done.stdout.splitlines())) <= columns
    assert "\x1b" not in done.stdout  # no colours into a pipe


def test_json_has_the_lines_and_their_sums(folder: Path) -> None:
    done = stator_in(
        folder,
        "cost",
        "shop.py:shop",
        "--json",
        "--mode",
        "provisioned",
        "--pitr",
        "--streams",
        "1",
    )
    data = json.loads(done.stdout)
    assert data["mode"] == "provisioned" and data["utilisation"] == 0.7
    assert set(data["kinds"]) == {"reads", "writes", "storage", "streams", "backups"}
    for group in ("kinds", "patterns", "entities", "places"):
        assert sum(data[group].values()) == pytest.approx(data["dollars_per_month"])


def test_a_change_is_said_in_one_sentence(committed: Path) -> None:
    done = stator_in(committed, "cost", "--diff", "main", columns=400)
    sentence = done.stdout.splitlines()[0]
    assert done.returncode == 0, done.stderr
    assert sentence.startswith("This change adds $")
    assert "user_by_email is new (+$" in sentence
    assert sentence.endswith(".")
    data = json.loads(stator_in(committed, "cost", "--diff", "HEAD", "--json").stdout)
    assert data["diff"]["sentence"] == sentence
    assert sum(each["dollars_per_month"] for each in data["diff"]["changes"]) == pytest.approx(
        data["diff"]["dollars_per_month"]
    )


def test_workload_and_keys_are_told_apart(committed: Path) -> None:
    text = with_email()
    assert "rps=120" in text
    (committed / "shop.py").write_text(text.replace("rps=120", "rps=480"))
    second = stator_in(committed, "cost", "--diff", "main", columns=400).stdout.splitlines()[1]
    assert second.startswith("Of this, +$")
    assert "from the workload (orders_of_user 480 times a second instead of 120)" in second
    assert "new or gone" in second
    origin = json.loads(stator_in(committed, "cost", "--diff", "main", "--json").stdout)["diff"][
        "origin"
    ]
    assert origin["sentence"] == second
    assert origin["workload_dollars_per_month"] > 0


def test_a_lock_without_a_workload_is_priced_by_todays(committed: Path) -> None:
    data = json.loads((committed / "shop.design.json").read_text()) | {"format": 1}
    del data["demand"]
    (committed / "shop.design.json").write_text(json.dumps(data))
    git(committed, "commit", "-q", "-a", "-m", "old")
    done = stator_in(committed, "cost", "--diff", "HEAD", columns=400)
    assert "both sides use today's" in done.stdout.splitlines()[1]


def test_a_change_is_found_from_another_folder_too(committed: Path, tmp_path: Path) -> None:
    inside = committed / "docs"
    inside.mkdir()
    done = stator_in(inside, "cost", "../shop.py", "--diff", "main")
    assert done.stdout.startswith("This change adds $")


def test_no_change_costs_nothing(committed: Path) -> None:
    (committed / "shop.py").write_text(DESIGN)
    assert stator_in(committed, "cost", "--diff", "main").stdout.startswith(
        "This change costs nothing"
    )


def fails(folder: Path, *arguments: str) -> str:
    done = stator_in(folder, "cost", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ") and "\nhint: " in done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_without_git_there_is_nothing_to_compare_with(folder: Path) -> None:
    assert "is not in a git repository" in fails(folder, "--diff", "main")


@pytest.mark.parametrize("revision", ["no-such-branch", "--output=x", "HEAD~99", ""])
def test_an_unknown_revision_is_named(committed: Path, revision: str) -> None:
    assert f"git does not know the revision {revision}" in fails(committed, f"--diff={revision}")


def test_a_revision_without_a_lock_file_is_told(committed: Path) -> None:
    git(committed, "rm", "-q", "--cached", "shop.design.json")
    git(committed, "commit", "-q", "-m", "two")
    assert "revision HEAD has no shop.design.json" in fails(committed, "--diff", "HEAD")


@pytest.mark.parametrize(
    "text", ["not json", "{}", "[]", '{"format": 1, "name": "shop"}', '{"format": 99}']
)
def test_a_broken_lock_file_is_told(committed: Path, text: str) -> None:
    good = (committed / "shop.design.json").read_text()
    (committed / "shop.design.json").write_text(text)
    git(committed, "commit", "-q", "-a", "-m", "broken")
    assert "shop.design.json" in fails(committed)
    (committed / "shop.design.json").write_text(good)
    assert "shop.design.json in HEAD" in fails(committed, "--diff", "HEAD")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--region", "mars-1"], "no prices for region 'mars-1'"),
        (["missing.py"], "missing.py"),
        (["shop.py:nothing"], "nothing"),
    ],
)
def test_a_mistake_is_explained(folder: Path, arguments: list[str], message: str) -> None:
    assert message in fails(folder, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--mode", "free"],
        ["--utilisation", "0"],
        ["--utilisation", "2"],
        ["--years", "2"],
        ["--streams", "-1"],
    ],
)
def test_wrong_usage_exits_with_2(folder: Path, arguments: list[str]) -> None:
    done = stator_in(folder, "cost", *arguments)
    assert done.returncode == 2
    assert "Usage: stator cost" in done.stderr


def test_a_missing_price_is_left_out_with_a_note(folder: Path) -> None:
    more = ["--region", "eu-north-1", "--streams", "1", "--pitr", "--backups", "2"]
    done = stator_in(folder, "cost", *more)
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    for what in ("stream reads", "point-in-time recovery", "backups"):
        assert f"the price of {what} in eu-north-1 is missing" in words
    data = json.loads(stator_in(folder, "cost", *more, "--json").stdout)
    assert len(data["not_included"]) == 3 and set(data["kinds"]) == {"reads", "writes", "storage"}


def test_rates_and_volumes_can_be_multiplied(folder: Path) -> None:
    def kinds(*more: str) -> dict[str, float]:
        found: dict[str, float] = json.loads(stator_in(folder, "cost", "--json", *more).stdout)[
            "kinds"
        ]
        return found

    usual, busier = kinds(), kinds("--scale", "10")
    assert busier["reads"] == pytest.approx(10 * usual["reads"])
    assert busier["writes"] == pytest.approx(10 * usual["writes"])
    assert busier["storage"] == usual["storage"]
    assert kinds("--scale-volumes", "10")["storage"] == pytest.approx(10 * usual["storage"])
    assert "note: rates times 10" in stator_in(folder, "cost", "--scale", "10").stdout
    assert stator_in(folder, "cost", "--scale", "10", "--diff", "main").returncode == 2
