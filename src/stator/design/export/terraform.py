"""Terraform's HCL, in the form that ``terraform fmt`` leaves unchanged.

An index with one attribute in each part of its key is written with ``hash_key`` and ``range_key``,
which every version of the AWS provider reads. If a part has several attributes, the index is
written with ``key_schema`` blocks, which require version 6.29 of the provider
(hashicorp/terraform-provider-aws issue 45216).
"""

from __future__ import annotations

import json
from typing import Any, Final

from stator.design.export.source import Exported, ExportSource, snake
from stator.design.plan.plan import IndexPlan, TablePlan
from stator.design.table_settings import AWS_MANAGED_KEY, ProvisionedCapacity

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
        *(part for table in tables for part in _scaling(table, source)),
        *(_output(table) for table in tables),
    ]
    note = (
        f"{', '.join(several)}: several attributes in a key need version {version} of the AWS "
        f"provider"
    )
    return Exported("\n\n".join(parts) + "\n", (note,) if several else ())


def _table(table: TablePlan, source: ExportSource) -> str:
    settings = source.settings
    capacity = settings.capacity
    plain = [
        ("name", _text(table.name)),
        ("billing_mode", _text("PAY_PER_REQUEST" if capacity is None else "PROVISIONED")),
        *_units(capacity),
        ("hash_key", _text(table.partition)),
    ]
    if table.sort:
        plain.append(("range_key", _text(table.sort)))
    stream = settings.stream or settings.streams.get(table.name)
    if stream is not None:
        plain += [("stream_enabled", "true"), ("stream_view_type", _text(stream))]
    if settings.table_class is not None:
        plain.append(("table_class", _text(settings.table_class)))
    if settings.deletion_protection is not None:
        plain.append(("deletion_protection_enabled", str(settings.deletion_protection).lower()))
    lines = [f'resource "aws_dynamodb_table" "{snake(table.name)}" {{', *_aligned(plain, 2)]
    for name, kind in table.attributes:
        lines += _block("attribute", [("name", _text(name)), ("type", _text(kind))])
    for index in table.indexes:
        lines += _index(index, None if capacity is None else capacity.of_index(index.name))
    if settings.recovers:
        days = settings.recovery_days
        period = [] if days is None else [("recovery_period_in_days", str(days))]
        lines += _block("point_in_time_recovery", [("enabled", "true"), *period])
    if settings.kms_key is not None:
        own = settings.kms_key != AWS_MANAGED_KEY
        key = [("kms_key_arn", _text(settings.kms_key))] if own else []
        lines += _block("server_side_encryption", [("enabled", "true"), *key])
    if settings.tags:
        tags = [(_text(name), _text(value)) for name, value in settings.tags.items()]
        lines += ["", "  tags = {", *_aligned(tags, 4), "  }"]
    ttl = table.ttl
    if ttl is not None:
        lines += _block("ttl", [("attribute_name", _text(ttl)), ("enabled", "true")])
    lines += _block("lifecycle", _lifecycle(table, source))
    return "\n".join([*lines, "}"])


def _units(capacity: ProvisionedCapacity | None) -> list[tuple[str, str]]:
    if capacity is None:
        return []
    return [
        ("read_capacity", str(capacity.read_units)),
        ("write_capacity", str(capacity.write_units)),
    ]


def _lifecycle(table: TablePlan, source: ExportSource) -> list[tuple[str, str]]:
    """Return the arguments of a table's ``lifecycle`` block.

    If Application Auto Scaling changes the capacity, ``ignore_changes`` names the capacity
    arguments. Otherwise Terraform would set the capacity back at each ``apply``.
    """
    found = [("prevent_destroy", "true")]
    scaled = source.scaled(table)
    changing = [f"{each.dimension.lower()}_capacity" for each in scaled if each.index is None]
    changing += ["global_secondary_index"] if any(each.index for each in scaled) else []
    return [*found, ("ignore_changes", f"[{', '.join(changing)}]")] if changing else found


def _scaling(table: TablePlan, source: ExportSource) -> list[str]:
    """Return the resources that register Application Auto Scaling for a table and its indexes."""
    parts = []
    resource = f"aws_dynamodb_table.{snake(table.name)}"
    for each in source.scaled(table):
        place = f"_{snake(each.index)}" if each.index else ""
        name = f"{snake(table.name)}{place}_{each.dimension.lower()}"
        where = f"/index/{each.index}" if each.index else ""
        target = [
            ("service_namespace", _text("dynamodb")),
            ("resource_id", f'"table/${{{resource}.name}}{where}"'),
            ("scalable_dimension", _text(each.name)),
            ("min_capacity", str(each.least)),
            ("max_capacity", str(each.most)),
        ]
        parts.append(
            "\n".join(
                [f'resource "aws_appautoscaling_target" "{name}" {{', *_aligned(target, 2), "}"]
            )
        )
        owner = f"aws_appautoscaling_target.{name}"
        policy = [
            ("name", _text(f"{table.name}-{each.index or 'table'}-{each.dimension.lower()}")),
            ("policy_type", _text("TargetTrackingScaling")),
            ("service_namespace", f"{owner}.service_namespace"),
            ("resource_id", f"{owner}.resource_id"),
            ("scalable_dimension", f"{owner}.scalable_dimension"),
        ]
        parts.append(
            "\n".join(
                [
                    f'resource "aws_appautoscaling_policy" "{name}" {{',
                    *_aligned(policy, 2),
                    "",
                    "  target_tracking_scaling_policy_configuration {",
                    f"    target_value = {each.target * 100:g}",
                    "",
                    "    predefined_metric_specification {",
                    f"      predefined_metric_type = {_text(each.metric)}",
                    "    }",
                    "  }",
                    "}",
                ]
            )
        )
        parts += [_scheduled(action, name, owner) for action in each.scheduled()]
    return parts


def _scheduled(action: dict[str, Any], name: str, owner: str) -> str:
    arguments = [
        ("name", _text(action["ScheduledActionName"])),
        ("service_namespace", f"{owner}.service_namespace"),
        ("resource_id", f"{owner}.resource_id"),
        ("scalable_dimension", f"{owner}.scalable_dimension"),
        ("schedule", _text(action["Schedule"])),
        ("timezone", _text(action["Timezone"])),
    ]
    names = {"MinCapacity": "min_capacity", "MaxCapacity": "max_capacity"}
    bounds = [
        (names[member], str(value)) for member, value in action["ScalableTargetAction"].items()
    ]
    resource = f"{name}_{snake(action['ScheduledActionName'])}"
    return "\n".join(
        [
            f'resource "aws_appautoscaling_scheduled_action" "{resource}" {{',
            *_aligned(arguments, 2),
            *_block("scalable_target_action", bounds),
            "}",
        ]
    )


def _index(index: IndexPlan, capacity: ProvisionedCapacity | None) -> list[str]:
    projection = [*_units(capacity), ("projection_type", _text(index.projection))]
    if index.projection == "INCLUDE":
        projection.append(("non_key_attributes", f"[{', '.join(map(_text, index.included))}]"))
    if index.kind == "LSI":
        projection = [each for each in projection if not each[0].endswith("_capacity")]
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
