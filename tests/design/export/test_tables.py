"""Exports of tables, read by their tools or by parsers, agree with the plan."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stator.design.design import Design
from stator.design.entities.entity import Entity, info
from stator.design.entities.markers import ident, ttl
from stator.design.export import TARGETS, export
from stator.design.export.index_steps import plan_steps
from stator.design.export.source import ExportSource, camel, snake
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.plan.drift import table_drift
from stator.design.plan.own_table import IDENTITY, guarded_fields, own_table
from stator.engine import Engine
from stator.errors import DesignError

from .sources import NAMES, sources

TERRAFORM = shutil.which("terraform")
PLUGINS = os.environ.get(
    "TERRAFORM_PLUGIN_DIR"
)  # a folder of providers, where there is no registry to ask


@pytest.fixture(params=NAMES)
def source(request: pytest.FixtureRequest) -> ExportSource:
    return sources()[request.param]


def text_of(source: ExportSource, target: str) -> str:
    return export(source.design, target, source.plan).text


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_design_gives_the_same_text_and_names_every_table_and_index(
    target: str, source: ExportSource
) -> None:
    text = text_of(source, target)
    assert text == text_of(source, target)
    assert text.endswith("\n") and not text.endswith("\n\n")
    for table in source.plan.tables if target == "iam" else source.tables:
        assert table.name in text
        if target != "iam":
            assert all(f'"{index.name}"' in text for index in table.indexes)


def test_an_unknown_target_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DesignError, match="no export to 'pulumi'") as raised:
        export(sources()["shop"].design, "pulumi")
    assert "terraform" in str(raised.value.hint)


def test_a_table_expires_items_by_one_attribute() -> None:
    class Session(Entity):
        session_id: str = ident()
        gone: int | None = ttl(days=1, default=None)

    class Token(Entity):
        token_id: str = ident()
        ends: int | None = ttl(days=1, default=None)

    with pytest.raises(DesignError, match=r"Session\.gone and Token\.ends"):
        export(Design("two", [Session, Token], []), "cloudformation")
    with pytest.raises(DesignError, match=r"Session\.gone and Token\.ends are in table two"):
        Design("two", [Session, Token], []).plan()
    apart = Design("two", [Session, Token], [], layout="table-per-entity")
    assert [table.ttl for table in apart.plan().tables] == ["gone", "ends"]
    assert json.loads(export(apart, "cloudformation").text)["Resources"].keys() == {
        "TwoSessionTable",
        "TwoTokenTable",
    }


def test_a_number_with_the_name_of_a_time_to_live_would_be_one() -> None:
    class Session(Entity):
        session_id: str = ident()
        ends: datetime | None = ttl(days=1, default=None)

    class Course(Entity):
        course_id: str = ident()
        ends: int

    class Film(Entity):
        film_id: str = ident()
        ends: str

    with pytest.raises(
        DesignError, match=r"DynamoDB would expire items of table .* by the number Course\.ends"
    ):
        Design("two", [Session, Course], []).plan()
    assert Design("two", [Session, Film], []).plan().tables[0].ttl == "ends"


@pytest.mark.parametrize(
    ("name", "as_camel", "as_snake"),
    [
        ("shop", "Shop", "shop"),
        ("shop-order", "ShopOrder", "shop_order"),
        ("2.a_b", "Table2AB", "table_2_a_b"),
    ],
)
def test_names_fit_the_languages(name: str, as_camel: str, as_snake: str) -> None:
    assert (camel(name), snake(name)) == (as_camel, as_snake)


# --- the table beside them ------------------------------------------------------------------------


@pytest.mark.parametrize("target", [each for each in TARGETS if each != "iam"])
def test_the_table_of_guards_and_patterns_is_there_where_it_is_needed_or_asked_for(
    target: str,
) -> None:
    games, shop = sources()["games"].design, sources()["shop"].design
    assert f"{games.name}-stator" not in export(games, target).text
    assert f"{games.name}-stator" in export(games, target, with_patterns=True).text

    class Visit(Entity, key=("PLACE#{place}", "VISIT#{visit_id}")):  # more than the identity
        visit_id: str = ident()
        place: str

    assert "visits-stator" in export(Design("visits", [Visit]), target).text
    assert "shop-stator" in export(shop, target).text
    assert export(shop, target, with_patterns=True).text == export(shop, target).text


def test_it_is_the_table_that_the_data_layer_makes() -> None:
    from stator import connect

    design = sources()["shop"].design
    assert isinstance(design, Design)
    with Engine.open() as engine:
        connect(design, engine).close()
        made = engine.call("DescribeTable", {"TableName": "shop-stator"})["Table"]
        expiry = engine.call("DescribeTimeToLive", {"TableName": "shop-stator"})[
            "TimeToLiveDescription"
        ]
        assert table_drift(own_table("shop"), made) == []
        assert expiry["AttributeName"] == own_table("shop").ttl


# --- CloudFormation -------------------------------------------------------------------------------


def test_cfn_lint_finds_nothing(tmp_path: Path) -> None:
    pytest.importorskip("cfnlint")
    files = []
    for name, source in sources().items():
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(text_of(source, "cloudformation"))
        files.append(tmp_path / f"{name}-with-patterns.json")
        files[-1].write_text(
            export(source.design, "cloudformation", source.plan, with_patterns=True).text
        )
    ran = subprocess.run(
        [Path(sys.executable).parent / "cfn-lint", "--include-checks", "I", "--", *files],
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr


def test_the_template_makes_the_tables_of_the_plan(source: ExportSource) -> None:
    resources = json.loads(text_of(source, "cloudformation"))["Resources"].values()
    properties = {each["Properties"]["TableName"]: each["Properties"] for each in resources}
    assert properties.keys() == {table.name for table in source.tables}
    for table in source.tables:
        made = properties[table.name]
        expiry = made.pop("TimeToLiveSpecification", None)
        recovery = made.pop("PointInTimeRecoverySpecification")
        assert recovery == {"PointInTimeRecoveryEnabled": True}
        assert made == table.create_request()
        assert (expiry and expiry["AttributeName"]) == table.ttl


# --- Terraform ------------------------------------------------------------------------------------


@pytest.mark.skipif(TERRAFORM is None, reason="terraform is not installed")
def test_terraform_reads_it_and_has_nothing_to_format(source: ExportSource, tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text(text_of(source, "terraform"))
    ran = subprocess.run(
        [str(TERRAFORM), "fmt", "-check", "-diff", "-no-color"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr


@pytest.mark.skipif(TERRAFORM is None, reason="terraform is not installed")
def test_terraform_validates_it_against_the_provider(tmp_path: Path) -> None:
    """All designs share a folder, because the provider takes seconds to start.

    Keys of several attributes need a newer provider than the installed one.
    """
    for name, source in sources().items():
        exported = export(source.design, "terraform", source.plan)
        if not exported.notes:
            folder = tmp_path / name.replace("-", "_")
            folder.mkdir()
            (folder / "main.tf").write_text(exported.text)
    calls = "".join(
        f'module "{each.name}" {{\n  source = "./{each.name}"\n}}\n' for each in tmp_path.iterdir()
    )
    (tmp_path / "main.tf").write_text(calls)
    environment = {**os.environ, "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
    plugins = [f"-plugin-dir={PLUGINS}"] if PLUGINS else []

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(TERRAFORM), *arguments, "-no-color"]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=120
        )

    begun = run("init", "-input=false", *plugins)
    if begun.returncode != 0:
        pytest.skip(f"terraform cannot get the AWS provider here: {begun.stderr[-200:]}")
    checked = run("validate")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_keys_of_several_attributes_ask_for_a_newer_provider() -> None:
    exported = export(sources()["games"].design, "terraform")
    assert "6.29.0" in exported.notes[0]
    assert '      version = ">= 6.29.0"' in exported.text
    assert exported.text.count("key_schema {") == 3
    assert export(sources()["shop"].design, "terraform").notes == ()


# --- CDK ------------------------------------------------------------------------------------------


class _Recorder:
    """Stands for aws_cdk where it is not installed: what is called is put down."""

    def __init__(self) -> None:
        self.tables: list[dict[str, Any]] = []

    def modules(self) -> dict[str, Any]:
        names = SimpleNamespace
        plain = lambda **members: names(**members)  # noqa: E731
        enum = names(STRING="S", NUMBER="N", BINARY="B")
        dynamodb = names(
            AttributeType=enum,
            Attribute=plain,
            TableV2=lambda scope, name, **members: self.tables.append(members),
            GlobalSecondaryIndexPropsV2=plain,
            LocalSecondaryIndexProps=plain,
            ProjectionType=names(ALL="ALL", INCLUDE="INCLUDE", KEYS_ONLY="KEYS_ONLY"),
            Billing=names(on_demand=lambda: "on demand", provisioned=plain),
            PointInTimeRecoverySpecification=plain,
            StreamViewType=names(NEW_AND_OLD_IMAGES="both"),
            TableClass=names(STANDARD_INFREQUENT_ACCESS="infrequent"),
            Capacity=names(fixed=lambda units: units, autoscaled=plain),
            TableEncryptionV2=names(customer_managed_key=lambda key: key),
        )
        stack = type("Stack", (), {"__init__": lambda self, scope, name, **options: None})
        app = type("App", (), {"synth": lambda self: None})
        cdk = names(
            App=app,
            Stack=stack,
            RemovalPolicy=names(RETAIN="retain"),
            CfnTag=plain,
            aws_dynamodb=dynamodb,
            aws_kms=names(Key=names(from_key_arn=lambda scope, name, arn: arn)),
        )
        return {
            "aws_cdk": cdk,
            "aws_cdk.aws_dynamodb": dynamodb,
            "constructs": names(Construct=object),
        }


def test_the_cdk_app_compiles_and_declares_the_tables_of_the_plan(
    source: ExportSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = _Recorder()
    for name, module in recorder.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    text = text_of(source, "cdk")
    exec(compile(ast.parse(text), "app.py", "exec"), {"__name__": "app"})
    assert [table["table_name"] for table in recorder.tables] == [
        table.name for table in source.tables
    ]
    for made, table in zip(recorder.tables, source.tables):
        kinds = dict(table.attributes)
        assert (made["partition_key"].name, made["partition_key"].type) == (
            table.partition,
            kinds[table.partition],
        )
        declared = [
            *made.get("global_secondary_indexes", []),
            *made.get("local_secondary_indexes", []),
        ]
        for index in table.indexes:
            found = vars(next(each for each in declared if each.index_name == index.name))
            assert _names(found, "sort") == index.sort
            assert _names(found, "partition") == (index.partition if index.kind == "GSI" else ())
            assert found["projection_type"] == index.projection
        assert len(declared) == len(table.indexes)


def _names(index: dict[str, Any], kind: str) -> tuple[str, ...]:
    several = (
        index.get(f"{kind}_keys") or [index[f"{kind}_key"]]
        if f"{kind}_key" in index or f"{kind}_keys" in index
        else []
    )
    return tuple(each.name for each in several)


# --- boto3 ----------------------------------------------------------------------------------------


def test_the_boto3_script_creates_the_tables_and_repeats_safely(
    source: ExportSource, dynamodb_client: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    module: dict[str, Any] = {"__name__": "create_tables"}
    exec(compile(text_of(source, "boto3"), "create_tables.py", "exec"), module)
    module["create_tables"](dynamodb_client)
    module["create_tables"](dynamodb_client)
    lines = capsys.readouterr().out.splitlines()
    tables = [table.name for table in source.tables]
    assert lines == [f"created {name}" for name in tables] + [
        f"{name} already exists" for name in tables
    ]
    for table in source.tables:
        described = dynamodb_client.describe_table(TableName=table.name)["Table"]
        request = table.create_request()
        assert described["KeySchema"] == request["KeySchema"]
        made = {each["IndexName"]: each for each in described.get("GlobalSecondaryIndexes", [])}
        for index in request.get("GlobalSecondaryIndexes", []):
            assert made[index["IndexName"]]["KeySchema"] == index["KeySchema"]
            assert made[index["IndexName"]]["Projection"] == index["Projection"]
        expiry = dynamodb_client.describe_time_to_live(TableName=table.name)[
            "TimeToLiveDescription"
        ]
        assert expiry.get("AttributeName") == table.ttl


# --- NoSQL Workbench ------------------------------------------------------------------------------


def test_the_workbench_model_has_its_members_and_items_that_fit_the_tables(
    source: ExportSource,
) -> None:
    model = json.loads(text_of(source, "nosql-workbench"))
    assert model["ModelMetadata"].keys() == {
        "Author", "DateCreated", "DateLastModified", "Description", "AWSService", "Version",
    }  # fmt: skip
    assert model["ModelMetadata"]["AWSService"] == "Amazon DynamoDB"
    assert [table["TableName"] for table in model["DataModel"]] == [
        table.name for table in source.tables
    ]
    own = {} if source.own_table is None else model["DataModel"].pop()
    assert [
        facet["KeyAttributeAlias"]["PartitionKeyAlias"] for facet in own.get("TableFacets", ())
    ] == [
        f"UNIQUE#{info(entity).name}#{field}#{{{(*info(entity).identity, field)[at]}}}"
        for entity in source.design.entities
        for field in guarded_fields(entity, source.plan)
        for at in (0 if field == IDENTITY else -1,)
    ]
    with Engine.open() as engine:
        for request in source.plan.create_table_requests():
            engine.call("CreateTable", request)
        for table in model["DataModel"]:
            declared = {
                each["AttributeName"]: each["AttributeType"] for each in table["NonKeyAttributes"]
            }
            keys = {each["AttributeName"] for each in table["KeyAttributes"].values()}
            assert "TableData" not in table
            for item in [item for facet in table["TableFacets"] for item in facet["TableData"]]:
                engine.call("PutItem", {"TableName": table["TableName"], "Item": item})
                assert item.keys() - keys <= declared.keys()
            entities = source.plan.table(table["TableName"]).entities
            assert {facet["FacetName"] for facet in table["TableFacets"]} == set(entities)


def test_the_workbench_model_says_what_its_format_cannot() -> None:
    exported = export(sources()["games"].design, "nosql-workbench")
    assert "several attributes in a key" in exported.notes[0]
    assert exported.notes[0] in json.loads(exported.text)["ModelMetadata"]["Description"]


# --- one index at a time --------------------------------------------------------------------------


def test_an_update_creates_or_deletes_one_index_of_a_table() -> None:
    class Order(Entity):
        order_id: str = ident()
        user_id: str
        city: str
        state: str

    def by(name: str) -> Any:
        def ask(value: str) -> Query[Order]:
            return find(Order).where(getattr(Order, name) == value)

        ask.__name__ = f"by_{name}"
        return read(rps=50, returns=20)(ask)

    before = Design("shop", [Order], [by("user_id")], volumes={Order: 10_000}).plan()
    after = Design("shop", [Order], [by("city"), by("state")], volumes={Order: 10_000})
    after.lock = before
    steps = plan_steps(before, after.plan())
    assert steps[-1] == after.plan()
    names = [{index.name for index in step.tables[0].indexes} for step in (before, *steps)]
    assert len(names) == 4  # two are created, and then one is deleted
    assert all(len(one ^ other) == 1 for one, other in pairwise(names))
    for step in steps:
        [table] = step.tables
        used = {table.partition, table.sort}
        used |= {name for index in table.indexes for name in (*index.partition, *index.sort)}
        assert {name for name, _ in table.attributes} == used - {None}
    assert plan_steps(before, before) == [before]


def test_new_tables_are_created_whole() -> None:
    plan = sources()["shop"].plan
    assert plan_steps(replace(plan, tables=()), plan) == [plan]
