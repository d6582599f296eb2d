"""Names that a command cannot find, and options that would have no effect, are explained.

Every command of data in motion is given every kind of name that may be absent: a file, a folder, a
table, a design, an entity, an app, a view, a parked item, a column and a function.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stator.addresses import Address, open_transport
from stator.cli.main import main
from stator.cli.register import GROUPS

from .serving import Serving

DESIGN = """
from stator import Design, Entity, Query, find, ident, read


class Sample(Entity):
    sample_id: str = ident()
    size: int = 0


class Other(Entity):
    other_id: str = ident()


@read()
def sample_by_id(sample_id: str) -> Query[Sample]:
    return find(Sample).where(Sample.sample_id == sample_id)


lab = Design("lab", [Sample, Other], [sample_by_id])
"""
APPS = """
from lab import Sample, lab
from stator.pipeline import Ingest, Projection, StreamApp, View, count

intake = Ingest(lab, "intake")
intake.put(Sample, topic="samples")
plain = StreamApp(lab, "plain")
plain.on.any(Sample, name="seen")(lambda change: None)
viewed = StreamApp(lab, "viewed")
viewed.add(View("sizes", of=Sample, by=Sample.size, samples=count()))
viewed.add(Projection("by_size", of=Sample, key=Sample.size))


def handle(event: dict, context: object) -> None:
    pass
"""
ORDERS = {
    "TableName": "orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
LOAD = "load rows.csv --to URL --table orders"
LOAD_SAMPLES = "load samples.csv --to URL --entity lab.py:Sample"

# A command line, and what its error says. URL is a server with a table of orders.
ABSENT: tuple[tuple[str, str], ...] = (
    # tables
    ("load rows.csv --to URL --table ghost", "there is no table ghost"),
    (LOAD_SAMPLES, "there is no table lab"),
    (f"{LOAD_SAMPLES} --prefix ghost-", "there is no table ghost-lab"),
    ("export URL --table ghost --out out", "there is no table ghost"),
    ("export URL --entity lab.py:Sample --out out", "there is no table lab"),
    ("export URL --table orders --design lab.py --out out", "no table orders in design lab"),
    ("export URL --table ghost --design lab.py --out out", "no table ghost in design lab"),
    ("export URL --table lab --design lab.py --prefix p- --out out", "no table lab in design lab"),
    ("export URL --design lab.py --out out", "there is no table lab"),
    ("copy URL URL --table ghost --to-table orders", "there is no table ghost"),
    ("copy URL URL --table orders --to-table ghost", "there is no table ghost"),
    ("work apps.py:plain --at URL --catch-up", "there is no table lab"),
    ("work apps.py:plain --at URL --catch-up --prefix ghost-", "there is no table ghost-lab"),
    ("views list apps.py:viewed --at URL", "there is no table lab"),
    ("views rebuild apps.py:viewed sizes --at URL", "there is no table lab"),
    ("views rebuild apps.py:viewed by_size --at URL --prefix ghost-", "no table ghost-lab"),
    ("views rebuild apps.py:viewed --all --at URL", "there is no table lab"),
    ("ingest apps.py:ghost --kafka 127.0.0.1:9 --at URL", "the file defines no ghost"),
    ("ingest apps.py:intake --kafka 127.0.0.1:9 --at ./ghost", "there is no folder ./ghost"),
    ("lambda run apps.py:ghost --stream orders --at URL", "has no function ghost"),
    ("lambda run apps.py:handle --stream ghost --at URL", "there is no table ghost"),
    ("lambda run apps.py:handle --stream orders --at ./ghost", "there is no folder ./ghost"),
    ("top apps.py:plain --at URL --once", "there is no table lab"),
    ("top apps.py:plain --at URL --once", "(AWS_DEFAULT_REGION)"),
    ("parked list apps.py:plain --at URL", "there is no table lab"),
    ("parked retry apps.py:plain --all --at URL", "there is no table lab"),
    ("parked drop apps.py:plain ghost --at URL --prefix ghost-", "there is no table ghost-lab"),
    # files, and folders that hold data
    ("load ghost.csv --to URL --table orders", "ghost.csv does not exist"),
    ("load ghost*.csv --to URL --table orders", "matches no file"),
    ("load rows.csv --to ./ghost --table orders", "there is no folder ./ghost"),
    ("load ghost.csv --to ./ghost --entity lab.py:Sample", "ghost.csv does not exist"),
    ("load rows.csv --to ./ghost --entity lab.py:Sample", "Sample has no field pk, total"),
    ("export ./ghost --table orders --out out", "there is no folder ./ghost"),
    ("export ./ghost --entity lab.py:Sample --out out", "there is no folder ./ghost"),
    ("export ./ghost --table lab --design lab.py --out out", "there is no folder ./ghost"),
    ("export --from-snapshot ./ghost --out out", "there is no export at ./ghost"),
    ("copy ./ghost URL --table orders", "there is no folder ./ghost"),
    ("copy URL ./ghost --table orders", "there is no folder ./ghost"),
    ("work apps.py:plain --at ./ghost", "there is no folder ./ghost"),
    ("views list apps.py:viewed --at ./ghost", "there is no folder ./ghost"),
    ("views rebuild apps.py:viewed --all --at ./ghost", "there is no folder ./ghost"),
    ("top apps.py:plain --at ./ghost --once", "there is no folder ./ghost"),
    ("parked list apps.py:plain --at ./ghost", "there is no folder ./ghost"),
    ("parked retry apps.py:plain --all --at ./ghost", "there is no folder ./ghost"),
    ("copy ./empty URL --table orders", "the folder ./empty is empty"),
    # designs and entities
    ("load samples.csv --to URL --entity ghost.py:Sample", "there is no file ghost.py"),
    ("load samples.csv --to URL --entity lab.py:Ghost", "design lab has no entity Ghost"),
    ("load samples.csv --to URL --entity lab.py:ghost:Sample", "defines no ghost"),
    ("load samples.csv --to URL --entity ghost:Sample", "there is no module ghost"),
    ("export URL --entity lab.py:Ghost --out out", "design lab has no entity Ghost"),
    ("export URL --entity lab.py --out out", "--entity lab.py names no entity"),
    ("export URL --table orders --design ghost.py --out out", "there is no file ghost.py"),
    ("export URL --table orders --design lab.py:ghost --out out", "defines no ghost"),
    # apps
    *(
        (f"{words} --at URL", problem)
        for command in ("work", "views list", "views rebuild", "top", "parked list")
        for words, problem in (
            (f"{command} ghost.py", "there is no file ghost.py"),
            (f"{command} apps.py:ghost", "defines no ghost"),
            (f"{command} apps.py:lab", "lab is not a StreamApp"),
            (f"{command} apps.py", "several apps: plain, viewed"),
            (f"{command} ghost:app", "there is no module ghost"),
        )
    ),
    # views
    ("views rebuild apps.py:plain --all --at HERE", "app 'plain' has 0 views"),
    ("views rebuild apps.py:plain --at HERE", "app 'plain' has 0 views"),
    ("views rebuild apps.py:plain ghost --at HERE", "app 'plain' has no view ghost"),
    ("views rebuild apps.py:viewed ghost --at HERE", "app 'viewed' has no view ghost"),
    ("views rebuild apps.py:viewed sizes ghost --at HERE", "app 'viewed' has no view ghost"),
    ("views rebuild apps.py:viewed --at HERE", "name one: sizes, by_size"),
    # parked items
    ("parked retry apps.py:plain ghost --at HERE", "no parked item matches ghost"),
    ("parked drop apps.py:plain --at HERE", "no item was named"),
    # columns and attributes
    (f"{LOAD} --map ghost=x", "--map names ghost"),
    (f"{LOAD} --map pk=ghost", "the table's key needs pk"),
    (f"{LOAD} --type ghost=N", "--type names ghost"),
    (f"{LOAD} --map total= --type total=N", "--type names total"),
    ("load samples.csv --to HERE --entity lab.py:Sample --map ghost=size", "--map names ghost"),
    ("load rows.csv --to HERE --entity lab.py:Sample", "Sample has no field pk, total"),
    # functions
    ("copy URL URL --table orders --to-table x --transform ghost:f", "there is no module ghost"),
    ("copy URL URL --table orders --to-table x --transform lab:ghost", "lab has no ghost"),
    # an address that is not there
    ("load rows.csv --to http://127.0.0.1:9 --table orders", "127.0.0.1:9"),
    ("export http://127.0.0.1:9 --table orders --out out", "127.0.0.1:9"),
    ("copy http://127.0.0.1:9 URL --table orders", "127.0.0.1:9"),
)
NO_EFFECT: tuple[tuple[str, str], ...] = (
    (f"{LOAD} --prefix prod-", "--prefix has no effect without --entity"),
    (f"{LOAD} --blobs blobs", "--blobs has no effect without --entity"),
    (f"{LOAD_SAMPLES} --type size=N", "--type has no effect with --entity"),
    (f"{LOAD} --key pk=S", "--key pk=S has no use here"),
    ("load rows.jsonl --to URL --table orders --delimiter ;", "--delimiter ';' has no effect"),
    ("export URL --table orders --prefix p- --out out", "--prefix has no effect without"),
    (
        "export URL --table lab --entity lab.py:Sample --design lab.py --out out",
        "--entity has no effect with --design",
    ),
    *(
        (f"export --from-snapshot snapshot {option} --out out", "has no effect with --from-snapsh")
        for option in (
            "--table orders",
            "--entity lab.py:Sample",
            "--design lab.py",
            "--prefix p-",
            "--rate 5",
            "--segments 8",
            "--consistent",
            "--region eu-west-1",
            "--profile work",
        )
    ),
    ("views list apps.py:viewed sizes --at HERE", "sizes has no effect on `stator views list`"),
    ("views list apps.py:viewed --all --at HERE", "--all has no effect on `stator views list`"),
    ("views list apps.py:viewed --work --at HERE", "--work has no effect on `stator views list`"),
    (
        "views rebuild apps.py:viewed sizes --all --at HERE",
        "sizes has no effect together with",
    ),
    ("parked list apps.py:plain x --at HERE", "x has no effect on `stator parked list`"),
    ("parked list apps.py:plain --all --at HERE", "--all has no effect on `stator parked list`"),
    ("parked retry apps.py:plain x --all --at HERE", "x has no effect together with"),
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Serving() as serving:
        address: str = serving.facts["url"]
        transport = open_transport(Address.parse(address), None, {"region": "us-east-1"})
        transport.call("CreateTable", ORDERS)
        transport.close()
        yield address


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with a design, two apps, files to load, and a folder of data."""
    (tmp_path / "lab.py").write_text(DESIGN)
    (tmp_path / "apps.py").write_text(APPS)
    (tmp_path / "rows.csv").write_text("pk,total\na,1\n")
    (tmp_path / "rows.jsonl").write_text('{"pk": "a"}\n')
    (tmp_path / "samples.csv").write_text("sample_id,size\na,1\n")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    import sys

    for name in ("lab", "apps"):
        sys.modules.pop(name, None)


def ended(line: str, url: str) -> int:
    if "HERE" in line:
        assert ended("load samples.csv --to here --entity lab.py:Sample", url) == 0
    words = line.replace("URL", url).replace("HERE", "./here").split()
    try:
        main(words)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize(("line", "problem"), ABSENT, ids=[line for line, _ in ABSENT])
def test_an_absent_name_is_explained(
    line: str, problem: str, url: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = ended(line, url)
    err = capsys.readouterr().err
    assert code == 1, err
    assert problem in err
    assert "error: " in err and "hint: " in err
    assert not (folder / "ghost").exists() and not list((folder / "empty").iterdir())


@pytest.mark.parametrize(("line", "problem"), NO_EFFECT, ids=[line for line, _ in NO_EFFECT])
def test_an_option_without_an_effect_is_refused(
    line: str, problem: str, url: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = ended(line, url)
    err = capsys.readouterr().err
    assert code in (1, 2), err
    assert problem in " ".join(err.split())


def test_every_command_of_data_in_motion_is_tried() -> None:
    names = {entry.name for group in ("Data", "Motion") for entry in GROUPS[group]}
    names |= {"top", "parked"}
    assert names == {line.split()[0] for line, _ in ABSENT}


def test_a_dry_run_creates_no_folder(url: str, folder: Path) -> None:
    line = "load samples.csv --to ./ghost --entity lab.py:Sample"
    assert ended(f"{line} --dry-run", url) == 0
    assert not (folder / "ghost").exists()
    assert ended(line, url) == 0
    assert (folder / "ghost").exists()


@pytest.mark.parametrize(
    "line",
    [
        "load rows.csv --to ./ghost --table orders --create --key pk=S",
        "copy URL ./ghost --table orders --create",
    ],
)
def test_a_target_is_created_on_request(line: str, url: str, folder: Path) -> None:
    assert ended(line, url) == 0
    assert (folder / "ghost").exists()
