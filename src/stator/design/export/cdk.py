"""A CDK app in Python: ``app.py``, with one stack that has the tables."""

from __future__ import annotations

import json
from typing import Final

from stator.design.export.source import Exported, ExportSource, camel, snake
from stator.design.plan.plan import IndexPlan, TablePlan

_TYPES: Final = {"S": "STRING", "N": "NUMBER", "B": "BINARY"}


def export(source: ExportSource) -> Exported:
    stack = f"{camel(source.design.name)}Stack"
    tables = "\n".join(_table(table, source) for table in source.tables)
    text = f'''"""The tables of {source.design.name}, made by `stator export-design cdk`.

    pip install aws-cdk-lib && cdk deploy --app "python app.py"
"""

from aws_cdk import App, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

STRING, NUMBER, BINARY = dynamodb.AttributeType.STRING, dynamodb.AttributeType.NUMBER, dynamodb.AttributeType.BINARY


def attribute(name: str, kind: dynamodb.AttributeType) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=kind)


class {stack}(Stack):
    def __init__(self, scope: Construct, construct_id: str, **options: object) -> None:
        super().__init__(scope, construct_id, **options)
{tables}


app = App()
{stack}(app, {_text(stack)})
app.synth()
'''
    return Exported(text)


def _table(table: TablePlan, source: ExportSource) -> str:
    kinds = dict(table.attributes)
    arguments = [
        f"table_name={_text(table.name)}",
        f"partition_key={_attribute(table.partition, kinds)}",
    ]
    if table.sort:
        arguments.append(f"sort_key={_attribute(table.sort, kinds)}")
    arguments += ["billing=dynamodb.Billing.on_demand()", "removal_policy=RemovalPolicy.RETAIN"]
    ttl = table.ttl
    if ttl is not None:
        arguments.append(f"time_to_live_attribute={_text(ttl)}")
    for member, kind in (("global_secondary_indexes", "GSI"), ("local_secondary_indexes", "LSI")):
        indexes = [_index(index, kinds) for index in table.indexes if index.kind == kind]
        if indexes:
            arguments.append(f"{member}=[\n{''.join(indexes)}            ]")
    shown = "".join(f"            {argument},\n" for argument in arguments)
    name = camel(table.name)
    return f"        self.{snake(table.name)} = dynamodb.TableV2(\n            self,\n            {_text(name)},\n{shown}        )"


def _index(index: IndexPlan, kinds: dict[str, str]) -> str:
    cls = "GlobalSecondaryIndexPropsV2" if index.kind == "GSI" else "LocalSecondaryIndexProps"
    arguments = [f"index_name={_text(index.name)}"]
    if index.kind == "GSI":
        arguments += _keys("partition_key", index.partition, kinds)
    arguments += _keys("sort_key", index.sort, kinds)
    arguments.append(f"projection_type=dynamodb.ProjectionType.{index.projection}")
    if index.projection == "INCLUDE":
        arguments.append(f"non_key_attributes=[{', '.join(map(_text, index.included))}]")
    shown = "".join(f"                    {argument},\n" for argument in arguments)
    return f"                dynamodb.{cls}(\n{shown}                ),\n"


def _keys(member: str, names: tuple[str, ...], kinds: dict[str, str]) -> list[str]:
    if len(names) > 1:
        return [f"{member}s=[{', '.join(_attribute(name, kinds) for name in names)}]"]
    return [f"{member}={_attribute(name, kinds)}" for name in names]


def _attribute(name: str, kinds: dict[str, str]) -> str:
    return f"attribute({_text(name)}, {_TYPES[kinds[name]]})"


def _text(text: str) -> str:
    return json.dumps(text)
