"""Terraform's HCL, in the form that ``terraform fmt`` leaves unchanged.

An index with one attribute in each part of its key is written with ``hash_key`` and ``range_key``,
which every version of the AWS provider reads. If a part has several attributes, the index is
written with ``key_schema`` blocks, which require version 6.29 of the provider
(hashicorp/terraform-provider-aws issue 45216).
"""

from __future__ import annotations

import json
from typing import Final

from stator.design.export.source import Exported, ExportSource, snake
from stator.design.plan.plan import IndexPlan, TablePlan

_PROVIDER: Final = "5.0"
_PROVIDER_OF_SEVERAL: Final = "6.29.0"


def export(source: ExportSource) -> Exported:
    tables = source.tables
    several = [index.name for table in tables for index in table.indexes if _has_several(index)]
    version = _PROVIDER_OF_SEVERAL if several else _PROVIDER
    provider = [("source", _text("hashicorp/aws")), ("version", _text(f">= {version}"))]
    parts = [
        "\n".join(
            [
                "terraform {",
                "  required_providers {",
                "    aws = {",
                *_aligned(provider, 6),
                "    }",
                "  }",
                "}",
            ]
        ),
        *(_table(table, source) for table in tables),
        *(_output(table) for table in tables),
    ]
    note = (
        f"{', '.join(several)}: several attributes in a key need version {version} of the AWS "
        f"provider"
    )
    return Exported("\n\n".join(parts) + "\n", (note,) if several else ())


def _table(table: TablePlan, source: ExportSource) -> str:
    plain = [
        ("name", _text(table.name)),
        ("billing_mode", _text("PAY_PER_REQUEST")),
        ("hash_key", _text(table.partition)),
    ]
    if table.sort:
        plain.append(("range_key", _text(table.sort)))
    lines = [f'resource "aws_dynamodb_table" "{snake(table.name)}" {{', *_aligned(plain, 2)]
    for name, kind in table.attributes:
        lines += _block("attribute", [("name", _text(name)), ("type", _text(kind))])
    for index in table.indexes:
        lines += _index(index)
    ttl = table.ttl
    if ttl is not None:
        lines += _block("ttl", [("attribute_name", _text(ttl)), ("enabled", "true")])
    lines += _block("lifecycle", [("prevent_destroy", "true")])
    return "\n".join([*lines, "}"])


def _index(index: IndexPlan) -> list[str]:
    projection = [("projection_type", _text(index.projection))]
    if index.projection == "INCLUDE":
        projection.append(("non_key_attributes", f"[{', '.join(map(_text, index.included))}]"))
    if index.kind == "LSI":
        keys = [("range_key", _text(index.sort[0]))]
        return _block("local_secondary_index", [("name", _text(index.name)), *keys, *projection])
    if not _has_several(index):
        keys = [("hash_key", _text(index.partition[0]))] + [
            ("range_key", _text(name)) for name in index.sort
        ]
        return _block("global_secondary_index", [("name", _text(index.name)), *keys, *projection])
    lines = _block("global_secondary_index", [("name", _text(index.name)), *projection])[:-1]
    for name, kind in [(name, "HASH") for name in index.partition] + [
        (name, "RANGE") for name in index.sort
    ]:
        inner = _block("key_schema", [("attribute_name", _text(name)), ("key_type", _text(kind))])
        lines += [f"  {line}" if line else line for line in inner]
    return [*lines, "  }"]


def _has_several(index: IndexPlan) -> bool:
    return len(index.partition) > 1 or len(index.sort) > 1


def _output(table: TablePlan) -> str:
    name = snake(table.name)
    return f'output "{name}_arn" {{\n  value = aws_dynamodb_table.{name}.arn\n}}'


def _block(name: str, arguments: list[tuple[str, str]]) -> list[str]:
    return ["", f"  {name} {{", *_aligned(arguments, 4), "  }"]


def _aligned(arguments: list[tuple[str, str]], indent: int) -> list[str]:
    width = max(len(name) for name, _ in arguments)
    return [f"{' ' * indent}{name:{width}} = {value}" for name, value in arguments]


def _text(text: str) -> str:
    """Return a quoted string. HCL would interpret template markers in it, so they are escaped."""
    return json.dumps(text, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")
