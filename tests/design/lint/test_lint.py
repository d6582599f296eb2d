"""Every rule finds the problem on its page in docs/lint, and not in the better design there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from stator.design.cost.report import cost
from stator.design.design import Design
from stator.design.lint.catalogue import CATALOGUE, CODES
from stator.design.lint.finding import Finding
from stator.design.lint.location import class_location, function_location
from stator.errors import ConfigurationError

from .. import models, shop

PAGES = Path(__file__).parents[3] / "docs" / "lint"
_IMPORTS = re.search(r"```python\n(.*?)```", (PAGES / "README.md").read_text(), re.DOTALL)


def example(code: str, heading: str = "Found in", changes: dict[str, str] | None = None) -> Design:
    """The design under a heading of a code's page, some of its words replaced."""
    block = re.search(
        rf"## {heading}\n```py\n(.*?)```", (PAGES / f"{code}.md").read_text(), re.DOTALL
    )
    assert block is not None and _IMPORTS is not None
    source = block[1]
    for old, new in (changes or {}).items():
        assert old in source
        source = source.replace(old, new)
    names: dict[str, Any] = {"__name__": f"{code}_{heading}"}
    exec(compile(_IMPORTS[1] + source, "<example>", "exec", dont_inherit=True), names)
    found: Design = names["design"]
    return found


def finding(design: Design, code: str) -> Finding:
    return next(each for each in design.check().findings if each.code == code)


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_rule_finds_what_its_page_shows(code: str) -> None:
    found = finding(example(code), code)
    assert found.message and found.fix and found.subject


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_rule_does_not_find_the_better_design(code: str) -> None:
    report = example(code, "Better").check()
    assert code not in report.codes()
    assert not [each for each in report.findings if each.severity == "error"]


# --- pages and codes


def test_every_code_has_its_page_and_every_page_its_code() -> None:
    assert {page.stem for page in PAGES.glob("ST*.md")} == CODES


def test_pages_have_the_titles_of_the_catalogue() -> None:
    index = (PAGES / "README.md").read_text()
    for entry in CATALOGUE:
        assert (
            (PAGES / f"{entry.code}.md").read_text().startswith(f"# {entry.code}: {entry.title}\n")
        )
        assert f"[{entry.code}]({entry.code}.md) | {entry.title} |" in index


def test_codes_are_in_order_and_differ() -> None:
    codes = [entry.code for entry in CATALOGUE]
    assert codes == sorted(set(codes))


# --- severities


def severity(code: str, changes: dict[str, str] | None = None) -> str:
    return finding(example(code, changes=changes), code).severity


def test_a_key_of_few_values_is_a_note_until_it_is_busy() -> None:
    assert severity("ST101") == "warning"
    assert severity("ST101", {"rps=900": "rps=30"}) == "note"


def test_a_day_as_partition_key_is_an_error_when_the_writes_of_now_do_not_fit() -> None:
    assert severity("ST102") == "warning"
    assert severity("ST102", {"rps=400": "rps=1400"}) == "error"
    assert severity("ST102", {"rps=400": "rps=40"}) == "note"


def test_counting_up_is_a_note_when_it_is_slow() -> None:
    assert severity("ST103") == "warning"
    assert severity("ST103", {"rps=200": "rps=2"}) == "note"


def test_a_hot_key_is_an_error_above_the_limit_and_a_warning_near_it() -> None:
    assert severity("ST104") == "error"
    assert severity("ST104", {"rps=8000": "rps=5000"}) == "warning"


def test_a_large_item_is_a_warning_before_it_is_an_error() -> None:
    assert severity("ST203") == "error"
    assert severity("ST203", {"500_000": "300_000"}) == "warning"


def test_a_transaction_is_a_warning_before_it_is_an_error() -> None:
    assert severity("ST501") == "error"
    assert severity("ST501", {"120": "70"}) == "warning"


def test_a_counter_that_one_item_cannot_take_is_an_error() -> None:
    assert severity("ST502") == "warning"
    assert severity("ST502", {"Video: 100_000": "Video: 2"}) == "error"


def test_an_index_written_by_hand_that_holds_large_items_is_a_warning() -> None:
    assert severity("ST303") == "note"
    assert (
        severity(
            "ST303", {"(Entity)": '(Entity, index={"by_team": ("TEAM#{team}", "{report_id}")})'}
        )
        == "warning"
    )


def test_more_indexes_than_dynamodb_allows_are_an_error() -> None:
    more = "".join(f'    "by_{at}": ("X{at}#{{make}}", "CAR#{{car_id}}"),\n' for at in range(16))
    assert severity("ST301") == "warning"
    assert severity("ST301", {"    },\n):": more + "}):"}) == "error"


def test_a_misspelt_ignore_is_a_warning() -> None:
    assert severity("ST004") == "note"
    assert severity("ST004", {"ST104:User": "ST1O4"}) == "warning"


# --- ignoring


def test_a_code_can_be_ignored_and_so_can_one_finding() -> None:
    for ignore in ("ST304", "ST304:Post.likes"):
        report = models.social(ignore=[ignore]).check()
        assert "ST304" not in report.codes()
        assert [each.code for each in report.ignored] == ["ST304"]
    assert "ST304" in models.social(ignore=["ST304:Post.at"]).check().codes()


def test_a_refusal_can_be_ignored_like_any_finding() -> None:
    design = example("ST002")
    design.ignore = ("ST002:orders_since",)
    report = design.check()
    assert report.ok
    assert report.plan is None


# --- reports


def test_published_models_have_no_errors() -> None:
    for design in (models.shop(), models.social(), models.routers(), shop.shop):
        assert not [each for each in design.check().findings if each.severity == "error"]


def test_all_refusals_are_found_at_once_and_other_rules_still_run() -> None:
    first = example("ST002")
    second = example("ST402")
    both = Design(
        "both",
        [*first.entities, *second.entities],
        [*first.reads, *second.reads, *second.write_patterns],
        sizes={second.entities[0]: 500_000},
    )
    report = both.check()
    assert {"ST002", "ST402", "ST203"} <= report.codes()
    assert report.plan is None
    assert not report.ok


def test_findings_point_at_the_lines_of_a_file() -> None:
    found = finding(models.social(), "ST304")
    assert found.subject == "Post.likes"
    assert found.location is not None
    assert found.location.excerpt.strip() == "likes: int = 0"
    assert str(found).startswith(f"{found.location}: ST304 ")


def test_places_are_found_and_what_has_no_file_has_no_place() -> None:
    where = class_location(shop.Order)
    assert where is not None and where.excerpt == "class Order(Entity):"
    assert function_location(shop.orders_of_user.function).excerpt.startswith("def orders_of_user")
    assert finding(example("ST203"), "ST203").location is None


def test_a_report_is_data() -> None:
    data = models.social().check().to_data()
    assert data["ok"] is True
    assert data["findings"][0]["code"] == "ST304"
    assert data["findings"][0]["field"] == "Post.likes"
    assert data["findings"][0]["file"].endswith("models.py")


def test_equal_designs_have_equal_reports() -> None:
    assert models.routers().check() == models.routers().check()


def test_a_lock_of_another_design_is_compared() -> None:
    design = models.shop()
    assert design.check(design.plan()).changes == ()
    assert {
        change.risk for change in design.check(models.shop("table-per-entity").plan()).changes
    } >= {"orphans"}


# --- money


def test_findings_about_cents_are_left_out() -> None:
    slow = example("ST407", changes={"rps=200": "rps=0.1"})
    assert "ST407" not in slow.check().codes()
    [cheap] = [each for each in slow.check().cheap if each.code == "ST407"]
    assert cheap.dollars is not None and 0 < cheap.dollars < 5
    assert "ST407" in slow.check(at_least=0).codes()
    assert "ST407" not in example("ST407").check(at_least=1_000_000).codes()


def test_an_error_is_reported_whatever_it_costs() -> None:
    assert "ST203" in example("ST203").check(at_least=1_000_000).codes()


def test_a_sum_below_zero_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at_least=-1"):
        example("ST407").check(at_least=-1)


def test_an_ignored_finding_about_cents_still_matches_its_entry() -> None:
    changes = {"rps=200": "rps=0.1", "    volumes=": '    ignore=["ST407"],\n    volumes='}
    assert "ST004" not in example("ST407", changes=changes).check().codes()


def monthly(design: Design) -> float:
    return float(cost(design).total)


@pytest.mark.parametrize(
    "code", ["ST201", "ST202", "ST207", "ST303", "ST304", "ST401", "ST407", "ST503"]
)
def test_the_better_design_saves_about_what_the_finding_says(code: str) -> None:
    found = finding(example(code), code)
    assert found.dollars is not None
    saved = monthly(example(code)) - monthly(example(code, "Better"))
    assert saved == pytest.approx(found.dollars, rel=0.3)


def test_a_smaller_transaction_saves_a_part_of_what_the_finding_says() -> None:
    found = finding(example("ST504"), "ST504")
    assert found.dollars is not None
    saved = monthly(example("ST504")) - monthly(example("ST504", "Better"))
    assert saved == pytest.approx(found.dollars / 2)  # two of the four items left it


def test_a_moved_entry_is_blamed_on_the_field_that_changes_most() -> None:
    moved = "@write(rps=20)\ndef moved() -> object:\n    return updates(Player.arena)\n\n\n"
    changes = {
        "    score: int": "    arena: str = ''\n    score: int",
        "leaders(game: str)": "leaders(game: str, arena: str)",
        "Player.game == game)": "Player.game == game, Player.arena == arena)",
        "[leaders, scored]": "[leaders, scored, moved]",
        "design =": f"{moved}design =",
    }
    design = example("ST304", changes=changes)
    found = finding(design, "ST304")
    assert found.subject == "Player.score"
    assert "changes 300 times a second" in found.message
    uses = [each for each in design.plan().uses if each.pattern == "scored" and each.index]
    units = sum(each.units for each in uses)
    assert found.dollars == pytest.approx(units * 730 * 3600 * 0.625e-6)


def test_a_key_that_is_hardly_used_is_not_reported() -> None:
    quiet = example("ST102", changes={"rps=400": "rps=5"})
    assert not {"ST101", "ST102", "ST104"} & quiet.check().codes()
