"""What every command prints on a terminal of 80 columns, with NO_COLOR, and in a pipe.

On a terminal, lines wrap between words. In a pipe, no sentence is broken, unless COLUMNS is set.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from stator.cli.output import is_coloured, say, styled
from stator.cli.register import COMMANDS

from .design_project import SHOP
from .terminal import in_pipe, on_terminal

SOURCES: Final = Path(__file__).parents[2] / "src" / "stator"
LAB: Final = """
from stator import Design, Entity, Query, find, ident, read, updates, write
from stator.pipeline import Projection, StreamApp, View, count


class Sample(Entity):
    sample_id: str = ident()
    a_field_with_a_rather_long_name: int = 0
    size: int = 0


class EntityWithALongName(Entity):
    other_id: str = ident()
    views: int = 0


@read(rps=100)
def sample_by_id(sample_id: str) -> Query[Sample]:
    return find(Sample).where(Sample.sample_id == sample_id)


@read(rps=5, returns=100)
def samples_of_size(size: int) -> Query[Sample]:
    return find(Sample).where(Sample.size == size)


@write(rps=5000)
def view_it() -> object:
    return updates(EntityWithALongName.views)


lab = Design("lab", [Sample, EntityWithALongName],
             [sample_by_id, samples_of_size, view_it])
"""
APPS: Final = """
from lab import Sample, lab
from stator.pipeline import Ingest, Projection, StreamApp, View, count

app = StreamApp(lab, "app")
app.on.any(Sample, name="seen")(lambda change: None)
app.add(View("sizes", of=Sample, by=Sample.size, samples=count()))
intake = Ingest(lab, "intake")
intake.put(Sample, topic="samples-of-the-lab")


def handler(event: dict, context: object) -> None:
    pass
"""

# A command line for each family of commands, by the name of its command.
LINES: Final[dict[str, str]] = {
    "plan": "plan shop.py",
    "plan of a table": "plan lab.py --table",
    "plan of layouts": "plan lab.py --layouts",
    "plan with measurements": "plan lab.py --verify --most-items 500",
    "plan that changes": "plan changed.py --write --force",
    "check": "check lab.py --fixes",
    "check against a lock file": "check changed.py",
    "cost": "cost lab.py",
    "doctor": "doctor",
    "docs": "docs lab.py --out page.html",
    "diff": "diff lab.py --at http://127.0.0.1:9",
    "infer": "infer items.json --out inferred.py --force",
    "simulate": "simulate lab.py --hot view_it=0.9 --minutes 5",
    "export-design": "export-design terraform lab.py --out lab.tf",
    "new": "new shop --folder new",
    "load that only counts": "load samples.csv --to memory --entity lab.py:Sample --dry-run",
    "load": "load samples.csv --to data --entity lab.py:Sample --restart",
    "export": "export data --entity lab.py:Sample --out out.jsonl --restart",
    "copy": "copy data copied --table lab --create --restart",
    "views": "views list apps.py:app --at data",
    "work": "work apps.py:app --at data --catch-up",
    "ingest": "ingest apps.py:intake --explain",
    "ingest without a broker": "ingest apps.py:intake --kafka 127.0.0.1:9 --at data",
    "lambda": "lambda run apps.py:handler --stream lab --at data --catch-up",
    "top": "top apps.py:app --at data --once",
    "parked": "parked list apps.py:app --at data",
    "verify": "verify data",
    "advise": "advise --history history.csv",
    "scale without a server": "scale lab --at http://127.0.0.1:9 --target 70 --min 5 --max 50",
    "report without a server": "report --table lab --at http://127.0.0.1:9 --month 2026-10",
    "dashboards": "dashboards grafana lab.py --out board.json",
    "alarms": "alarms prometheus lab.py --out rules.yml",
    "demo that cannot start": "demo --scale 1",
    "serve that cannot start": "serve --tls-key no-such-key --port 1 --data data",
    "an error": "plan no-such-file-with-a-name-that-is-long.py",
    "an error with a hint": "views list apps.py:app --at ./ghost",
    "wrong usage": "plan lab.py --verify --layouts",
    "an unknown option": "export data --entity lab.py:Sample --endpoint-url http://localhost:8000",
}
# Their output has no times and no rates, so two runs print the same.
STEADY: Final = (
    "plan", "plan of a table", "plan of layouts", "check", "check against a lock file", "cost",
    "doctor", "simulate", "ingest", "an error", "an error with a hint", "wrong usage",
)  # fmt: skip
# Words of progress bars, which only a terminal shows.
PROGRESS: Final = {"measuring", "verifying", "load", "copy", "export", "items", "failed", "WCU",
                   "RCU", "lab"}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with designs, lock files, an app, rows to load and a folder of data."""
    made = tmp_path_factory.mktemp("w")
    (made / "shop.py").write_text(SHOP)
    (made / "lab.py").write_text(LAB)
    (made / "apps.py").write_text(APPS)
    in_pipe(made, "plan", "shop.py", "--write")
    shutil.copy(made / "shop.design.json", made / "older.json")
    moved = SHOP.replace(
        "user_id: str\n    placed_at", "user_id: str\n    name: str\n    placed_at"
    )
    (made / "changed.py").write_text(moved.replace("    email: str = unique()", "    email: str"))
    (made / "samples.csv").write_text("sample_id,size\na,1\nb,2\nc,many\n")
    (made / "history.csv").write_text(history())
    (made / "items.json").write_text('{"Item": {"pk": {"S": "USER#1"}, "n": {"S": "2026-01-01"}}}')
    in_pipe(made, "work", "apps.py:app", "--at", "data", "--ensure", "--catch-up")
    return made


def history() -> str:
    """A day of a table, with writes that stop at noon."""
    lines = ["time,table,index,read_units,write_units,size_bytes"]
    for minute in range(1440):
        at = f"2026-11-02T{minute // 60:02d}:{minute % 60:02d}:00Z"
        lines.append(f"{at},orders,,3000,{6000 if minute < 720 else 0},1000000")
    return "\n".join(lines) + "\n"


def prepare(folder: Path) -> None:
    """Remove what an earlier run left, so that two runs of a command print the same."""
    for made in ("new", "copied"):
        shutil.rmtree(folder / made, ignore_errors=True)
    (folder / "out.jsonl").unlink(missing_ok=True)
    shutil.copy(folder / "older.json", folder / "shop.design.json")


def test_every_command_is_tried() -> None:
    assert {line.split()[0] for line in LINES.values()} == {entry.name for entry in COMMANDS}


@pytest.mark.parametrize("name", LINES)
def test_lines_wrap_between_words_and_no_color_is_obeyed(folder: Path, name: str) -> None:
    words = LINES[name].split()
    prepare(folder)
    piped = in_pipe(folder, *words)
    assert "\x1b[" not in piped
    prepare(folder)
    shown = on_terminal(folder, *words, env={"NO_COLOR": "1"})
    assert not re.findall(r"\x1b\[[0-9;]*m", shown)
    # A carriage return starts a line of a progress bar again.
    lines = re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))
    too_long = [line for line in lines if len(line) > 80 and " " in line.strip()]
    assert not too_long
    # A word that was broken leaves parts that the output in a pipe does not have.
    assert letters(shown) - letters(piped) <= PROGRESS


@pytest.mark.parametrize("name", STEADY)
def test_no_sentence_is_broken_in_a_pipe(folder: Path, name: str) -> None:
    words = LINES[name].split()
    piped, wide = in_pipe(folder, *words), in_pipe(folder, *words, env={"COLUMNS": "1000"})
    assert [line.split() for line in piped.splitlines()] == [
        line.split() for line in wide.splitlines()
    ]
    narrow = in_pipe(folder, *words, env={"COLUMNS": "60"})
    assert max(map(len, narrow.splitlines())) <= 60


@pytest.mark.parametrize("name", ["plan", "check", "doctor", "an error", "simulate", "cost"])
def test_a_terminal_has_colours(folder: Path, name: str) -> None:
    shown = on_terminal(folder, *LINES[name].split())
    assert re.search(r"\x1b\[[0-9;]*3[1-6]m", shown)
    assert "\x1b[" not in in_pipe(folder, *LINES[name].split())


def letters(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z]{3,}", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)))


def test_colours_are_decided_in_one_place() -> None:
    for path in (*(SOURCES / "cli").rglob("*.py"), *(SOURCES / "demo").rglob("*.py")):
        if path.name != "output.py":
            found = re.findall(r"typer\.(?:style|secho)\(|\bConsole\(", path.read_text())
            assert not found, f"{path} uses {found[0]}; use styled, say and rich_console instead"


def test_force_color_reaches_a_pipe_and_no_color_wins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    say(styled("red", "red"))
    assert capsys.readouterr().out == "\x1b[31mred\x1b[0m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert not is_coloured(sys.stdout)
    say(styled("red", "red"))
    assert capsys.readouterr().out == "red\n"


def test_colours_do_not_count_as_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    say(f"{styled('lock:', 'cyan', bold=True)} one two three four five", indent=6)
    assert re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out) == (
        "lock: one two three\n      four five\n"
    )
    say("a-word-that-is-longer-than-the-line and another")
    assert capsys.readouterr().out == "a-word-that-is-longer-than-the-line\nand another\n"
    say("stator load a-file --to somewhere", whole=True)
    assert capsys.readouterr().out == "stator load a-file --to somewhere\n"
