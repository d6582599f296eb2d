"""``stator plan``: finding a design, printing its plan, the lock file, errors in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .design_project import SHOP, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("shop.py", SHOP)
    return made


# --- what it prints


@pytest.mark.parametrize("columns", [80, 120])
def test_a_plan_shows_tables_keys_and_every_pattern(project: Project, columns: int) -> None:
    done = project.run("plan", columns=columns)
    assert done.returncode == 0, done.stderr
    for words in (
        "Table shop",
        "USER#{user_id}",
        "ORDER#{placed_at}",
        "orders_of_user(user_id)",
        'GSI1PK = "USER#user1" AND begins_with(GSI1SK, "ORDER#")',
        "RCU a call, single-digit milliseconds",
        "PutItem Order",
        "WCU a call",
        "a month",
        "User and Order share a partition",
    ):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= columns
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_has_every_pattern_and_fits(project: Project, columns: int) -> None:
    done = project.run("plan", "--table", columns=columns)
    assert done.returncode == 0, done.stderr
    for name in ("user_by_email", "orders_of_user", "user_page", "place_order"):
        assert name in done.stdout
    assert "why" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= columns


def test_json_has_the_same_for_scripts(project: Project) -> None:
    done = project.run("plan", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    orders = next(each for each in plan["patterns"] if each["name"] == "orders_of_user")
    assert orders["operation"] == "Query"
    assert orders["unit"] == "RCU"
    assert orders["units_per_call"] > 0
    assert orders["dollars_per_month"] > 0
    assert orders["example"].startswith('GSI1PK = "USER#user1"')
    assert orders["reasons"]
    assert plan["tables"][0]["indexes"][0]["patterns"] == ["orders_of_user", "user_page"]
    assert {each["name"] for each in plan["entities"]} == {"User", "Order"}


def test_what_the_file_prints_does_not_get_into_the_output(project: Project) -> None:
    project.edit("shop.py", "shop = Design", 'print("hello")\nshop = Design')
    done = project.run("plan", "--json")
    assert json.loads(done.stdout)["design"] == "shop"
    assert "hello" in done.stderr


# --- which design


@pytest.mark.parametrize("target", ["shop.py", "shop.py:shop", "shop:shop", "shop", "."])
def test_a_target_may_be_written_in_several_ways(project: Project, target: str) -> None:
    assert project.run("plan", target).returncode == 0


def test_a_module_of_a_package_is_a_target(project: Project) -> None:
    project.write("app/__init__.py", "")
    project.write("app/model.py", SHOP)
    done = project.run("plan", "app.model:shop", "--write")
    assert done.returncode == 0, done.stderr
    assert (project.folder / "app" / "shop.design.json").is_file()


def test_pyproject_may_name_the_design(project: Project) -> None:
    project.write("other.py", SHOP.replace('"shop"', '"other"'))
    project.write("pyproject.toml", '[tool.stator]\ndesign = "other.py:shop"\n')
    assert json.loads(project.run("plan", "--json").stdout)["design"] == "other"


def test_design_py_comes_before_other_files(project: Project) -> None:
    project.write("design.py", SHOP.replace('"shop"', '"main"'))
    assert json.loads(project.run("plan", "--json").stdout)["design"] == "main"


def test_several_files_with_designs_are_told_apart_by_the_user(project: Project) -> None:
    project.write("other.py", SHOP)
    done = project.run("plan")
    assert done.returncode == 1
    assert "other.py, shop.py" in done.stderr
    assert "hint:" in done.stderr and "[tool.stator]" in done.stderr


def test_a_folder_without_a_design_says_what_to_write(tmp_path: Path) -> None:
    done = Project(tmp_path).run("plan")
    assert done.returncode == 1
    assert "there is no design in this folder" in done.stderr
    assert "Design(" in done.stderr


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nothing.py", "there is no file nothing.py"),
        ("nowhere.model:shop", "there is no module nowhere"),
        ("shop.py:other", "the file defines no other"),
        ("shop.py:User", "User is not a Design"),
        ("what is this?", "neither a file nor a module"),
    ],
)
def test_a_wrong_target_is_explained(project: Project, target: str, words: str) -> None:
    done = project.run("plan", target)
    assert done.returncode == 1
    assert words in done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr


# --- broken files


@pytest.mark.parametrize(
    ("old", "new", "problem", "hint"),
    [
        (
            "find(Order)",
            "find(Ordr)",
            "NameError: name 'Ordr' is not defined",
            "did you mean Order?",
        ),
        (
            "Order.user_id ==",
            "Order.usr_id ==",
            "has no attribute 'usr_id'",
            "did you mean user_id?",
        ),
        (
            "import Entity",
            "import Entiti",
            "cannot import name 'Entiti'",
            "from stator import Entity",
        ),
        ("email: str = unique()", "email: complex", "complex cannot be stored", "use str, int"),
        ("    email: str = unique()", "    email str", "SyntaxError", "column"),
        (
            "order_id: str = ident()",
            "order_id: list[str] = ident()",
            "cannot identify an item",
            "an identity is",
        ),
        (
            "import Design, per",
            "import Design, per\nimport no_such_thing",
            "No module named",
            "install no_such_thing",
        ),
        ("[User, Order],", "[User],", "is about Order, which is not in the design", "add Order"),
        ("newest_first(", "newest_frist(", "newest_frist", "did you mean newest_first?"),
        ("volumes={User", 'layout="sideways", volumes={User', "unknown layout", "single-table"),
        (
            "Order.user_id == user_id)",
            "Order.user_id >= user_id)",
            "read the whole table",
            "compare a field with ==",
        ),
        (
            "return find(Order)",
            "if user_id: pass\n    return find(Order)",
            "cannot depend on the value",
            "two patterns",
        ),
        ("shop = Design", "raise SystemExit(3)\nshop = Design", "exits the program", "__main__"),
        (
            "shop = Design",
            "1 / 0\nshop = Design",
            "ZeroDivisionError: division by zero",
            "correct that line",
        ),
        (
            "import Bundle2, ",
            "import ",
            "name 'Bundle2' is not defined",
            "from stator import Bundle2",
        ),
    ],
)
def test_an_error_in_the_file_has_its_line_and_what_to_write(
    project: Project, old: str, new: str, problem: str, hint: str
) -> None:
    project.edit("shop.py", old, new)
    done = project.run("plan")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    first, _, rest = done.stderr.partition("\n")
    assert first.startswith("error: shop.py:")
    assert problem in first
    assert "\nhint: " in rest and hint in rest
    line = int(first.split(":")[2])
    shown = (project.folder / "shop.py").read_text().splitlines()[line - 1].strip()
    assert f"{line} | {shown}" in rest


def test_an_error_in_a_file_that_the_design_imports_is_located_there(project: Project) -> None:
    project.write("names.py", "x = 1\ny = zz\n")
    project.edit("shop.py", "from datetime", "import names\nfrom datetime")
    done = project.run("plan")
    assert done.stderr.startswith("error: names.py:2: NameError")


def test_no_design_and_several_designs_in_a_file(project: Project) -> None:
    project.write("empty.py", "x = 1\n")
    done = project.run("plan", "empty.py")
    assert done.returncode == 1
    assert "empty.py:1: the file defines no Design" in done.stderr
    project.write("two.py", SHOP + '\nother = Design("other", [User])\n')
    done = project.run("plan", "two.py")
    assert done.returncode == 1
    assert "two.py:shop or two.py:other" in done.stderr
    assert json.loads(project.run("plan", "two.py:other", "--json").stdout)["design"] == "other"


def test_errors_are_json_when_asked(project: Project) -> None:
    project.edit("shop.py", "Order.user_id == user_id)", "Order.user_id >= user_id)")
    done = project.run("plan", "--json")
    assert done.returncode == 1
    assert done.stdout == ""
    error = json.loads(done.stderr)["error"]
    assert error["type"] == "ScanNeeded"
    assert error["message"].startswith("shop.py:")


# --- the lock


def test_write_freezes_the_plan_beside_the_design(project: Project) -> None:
    done = project.run("plan", "--write")
    assert done.returncode == 0
    assert "wrote shop.design.json; commit it" in done.stderr
    assert json.loads((project.folder / "shop.design.json").read_text())["name"] == "shop"
    assert "is up to date" in project.run("plan", "--write").stderr
    assert "agrees" in project.run("plan").stderr


def test_writing_over_a_lock_says_what_it_means_and_orphans_nothing_unasked(
    project: Project,
) -> None:
    project.run("plan", "--write")
    frozen = (project.folder / "shop.design.json").read_text()
    project.edit(
        "shop.py", "class User(Entity)", 'class User(Entity, key=("PERSON#{user_id}", "USER"))'
    )
    assert "differs" in project.run("plan").stderr
    done = project.run("plan", "--write")
    assert done.returncode == 1
    assert "orphans: entity User: its key was PK = USER#{user_id}" in done.stderr
    assert "was not written" in done.stderr and "--force" in done.stderr
    assert (project.folder / "shop.design.json").read_text() == frozen
    done = project.run("plan", "--write", "--force")
    assert done.returncode == 0
    assert "orphans: entity User" in done.stderr
    assert "PERSON#" in (project.folder / "shop.design.json").read_text()


def test_force_without_write_is_a_mistake(project: Project) -> None:
    done = project.run("plan", "--force")
    assert done.returncode == 2
    assert "--write" in done.stderr


def test_a_plan_keeps_to_the_lock_until_it_is_asked_not_to(project: Project) -> None:
    """Only the lock remembers that orders once lay under their user."""
    handwritten = 'class Order(Entity, key=("USER#{user_id}", "ORDER#{placed_at}#{order_id}")):'
    project.edit("shop.py", "class Order(Entity):", handwritten)
    assert project.run("plan", "--write").returncode == 0
    project.edit("shop.py", handwritten, "class Order(Entity):")
    project.edit("shop.py", "orders_of_user, user_page, place_order", "place_order, take_back")
    project.edit("shop.py", "creates, find", "creates, deletes, find")
    project.edit(
        "shop.py",
        "shop = Design(",
        """@write(rps=30)
def take_back() -> object:
    return deletes(Order)


shop = Design(""",
    )

    def key(*more: str) -> str:
        done = project.run("plan", "--json", *more)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["entities"]
        order = next(each for each in found if each["name"] == "Order")
        return str(order["keys"][0]["template"])

    assert key() == "USER#{user_id}"
    assert key("--fresh") == key("--rekey", "Order") == "ORDER#{order_id}"
    assert "--rekey Order shows it" in project.run("plan").stderr
    assert project.run("plan", "--write").returncode == 0
    assert project.run("plan", "--write", "--rekey", "Order").returncode == 1
    assert "no entity 'Orders'" in project.run("plan", "--rekey", "Orders").stderr
    assert project.run("plan", "--rekey", "Order", "--fresh").returncode == 2


# --- layouts


@pytest.mark.parametrize("columns", [80, 120])
def test_layouts_are_priced_beside_each_other(project: Project, columns: int) -> None:
    done = project.run("plan", "--layouts", columns=columns)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    names = [row[0] for row in rows[1:4]]
    assert names == ["single-table", "aggregate", "table-per-entity"]
    assert "backups" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= columns
    data = json.loads(project.run("plan", "--layouts", "--json").stdout)
    tables = {each["layout"]: each["tables"] for each in data}
    assert tables == {"single-table": 1, "aggregate": 1, "table-per-entity": 2}
    one = json.loads(project.run("plan", "--json").stdout)
    assert data[0]["dollars_per_month"] == one["dollars_per_month"]
    assert data[0]["differences"] == []
    apart = data[2]["differences"]  # no copies of fields in generic keys; one request more
    assert any("items of" in each and "instead of" in each for each in apart)
    assert any(each.startswith("user_page: $") and each.endswith("more") for each in apart)
    assert apart[0][:20] in done.stdout


def test_layouts_are_only_compared(project: Project) -> None:
    done = project.run("plan", "--layouts", "--write")
    assert done.returncode == 2
    assert "--layouts" in done.stderr


def test_a_plan_as_markdown_shows_costs_keys_and_changes(project: Project) -> None:
    first = project.run("plan", "--format", "markdown")
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("### Plan of shop: about $")
    assert "There is no lock file yet." in first.stdout
    assert "| **orders_of_user** | Query GSI1" in first.stdout
    assert project.run("plan", "--write").returncode == 0
    assert "No changes since the lock file." in project.run("plan", "--format", "markdown").stdout
    changed = SHOP.replace("    placed_at: datetime\n", "    placed_at: str\n")
    project.write("shop.py", changed)
    assert (
        "| Change | Of | What | What to do |" in project.run("plan", "--format", "markdown").stdout
    )


def test_text_that_looks_like_markup_is_printed_as_it_is(project: Project) -> None:
    query = "find(Order).where(Order.user_id == user_id)"
    filtered = SHOP.replace(
        f"def orders_of_user(user_id: str) -> Query[Order]:\n    return {query}",
        "def orders_of_user(user_id: str, end: str) -> Query[Order]:\n"
        f"    return {query}.filter(Order.order_id < end)",
    )
    assert filtered != SHOP
    project.write("shop.py", filtered)
    done = project.run("plan", columns=200)
    assert done.returncode == 0, done.stderr
    assert "filter on order_id < :end: reads" in done.stdout


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("z: complex", "Point.z: complex cannot be stored"),
        ("z: dict[int, str]", "Point.z: "),
    ],
)
def test_a_type_that_cannot_be_stored_is_reported_at_its_field(
    project: Project, declared: str, problem: str
) -> None:
    """The pattern is only the first to look at it."""
    project.write(
        "shop.py",
        "from stator import Design, Entity, Query, find, ident, read\n\n\n"
        "class Other(Entity):\n    other_id: str = ident()\n\n\n"
        f"class Point(Entity):\n    point_id: str = ident()\n    {declared}\n    w: int\n\n\n"
        "@read(rps=1)\ndef point(point_id: str) -> Query[Point]:\n"
        "    return find(Point).where(Point.point_id == point_id)\n\n\n"
        'shop = Design("shop", [Other, Point], [point])\n',
    )
    done = project.run("plan")
    assert done.returncode == 1
    line = project.line_of("shop.py", declared)
    assert done.stderr.startswith(f"error: shop.py:{line}: {problem}"), done.stderr
    assert f"    {line} | {declared}" in done.stderr.replace("|     ", "| ")
