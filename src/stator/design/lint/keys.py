"""Rules about the text of keys."""

from __future__ import annotations

from collections.abc import Iterator

from stator.design.entities.entity import info
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding
from stator.design.plan.key_sizes import bounds, limit_of


def too_long(facts: Facts) -> Iterator[Finding]:
    for entity in facts.design.entities:
        shapes = {name: field.shape for name, field in info(entity).fields.items()}
        for key in facts.entity_plan(entity).keys:
            least, most = bounds(key.template, shapes)
            if (most or least) <= limit_of(key):
                continue
            always = least > limit_of(key)
            yield facts.on_entity(
                "ST206",
                "error" if always else "warning",
                entity,
                f"the {'sort' if key.is_sort else 'partition'} key {key.name} = {key.template} of {info(entity).name} "
                f"{f'has at least {least}' if always else f'can have {most}'} bytes; DynamoDB takes {limit_of(key)}",
                "key by fewer or shorter fields: give an Enum short values, and show long ones elsewhere",
            )
