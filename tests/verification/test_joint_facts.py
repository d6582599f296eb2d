"""True facts about single fields never make the generated data contradict what is known of two."""

from __future__ import annotations

import pytest

from stator.design.design import Design, per
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.value_facts import Fact, distinct
from stator.verification.declared_shape import DeclaredShape
from stator.verification.verifier import verify


class Environment(Entity):
    project_id: str = ident()
    env: str = ident()


class Flag(Entity):
    project_id: str = ident()
    flag: str = ident()


class Rule(Entity):
    project_id: str = ident()
    env: str = ident()
    flag: str = ident()
    rollout: int


@read(rps=200)
def rules_of(project_id: str, env: str) -> Query[Rule]:
    return find(Rule).where(Rule.project_id == project_id, Rule.env == env)


@read(rps=30, returns=4)
def flag_everywhere(project_id: str, flag: str) -> Query[Rule]:
    return find(Rule).where(Rule.project_id == project_id, Rule.flag == flag)


SINGLE = (distinct(Rule.env, values=500), distinct(Rule.flag, values=2_000_000))
FLAGS = 6_000_000


def flags(*facts: Fact) -> Design:
    return Design(
        "flags",
        [Environment, Flag, Rule],
        [rules_of, flag_everywhere],
        volumes={Environment: 80_000, Flag: FLAGS, Rule: per(Flag, 4)},
        sizes={Rule: 300},
        facts=facts,
    )


@pytest.mark.parametrize("facts", [(), SINGLE[:1], SINGLE[1:], SINGLE])
def test_a_pair_of_fields_that_is_an_identity_keeps_its_number_of_values(
    facts: tuple[Fact, ...],
) -> None:
    shape = DeclaredShape(flags(*facts))
    assert shape.values(Rule, ("project_id", "env")) == 80_000
    assert shape.values(Rule, ("project_id", "flag")) == FLAGS


def test_a_plan_with_facts_about_single_fields_verifies() -> None:
    """Planned 300 rules of an environment, measured 2.33: "80 times, please report it"."""
    report = verify(flags(*SINGLE))
    assert report.failed == ()
    [row] = [each for each in report.rows if each.pattern == "rules_of"]
    assert row.items_returned == pytest.approx(300, rel=0.05)
    assert not [note for each in report.rows for note in each.notes if "correct one" in note]


def test_an_index_holds_both_fields_instead_of_a_filter_across_tenants() -> None:
    """A name such as new-checkout gathers the flags of all projects, for $1.50 a month."""
    [step] = flags(*SINGLE).plan().pattern("flag_everywhere").steps
    assert step.filter is None
