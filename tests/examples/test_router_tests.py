"""Router tests: totals are exact, however often records arrive, and in whatever order."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from router_tests import LastTest, Producer, app, fleet, messages, records, summarise

from stator import TableSettings
from stator.pipeline import DeadRecordList
from tests.targets import Target


@pytest.mark.parametrize("seed", [1, 2])
def test_totals_are_those_of_the_tests_that_were_made(target: Target, seed: int) -> None:
    db = target.connect(fleet)
    db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
    chance = random.Random(seed)
    sent = messages(60, seed)
    log = records(sent)
    letters = DeadRecordList()
    at = 0
    while at < len(log):  # killed again and again; it begins before the end of what it wrote
        app.write(db, log[max(0, at - 15) : at + 20], dead_letters=letters)
        at += chance.randrange(1, 21)
    assert letters.letters == []
    tests = {test["test_id"]: test for _, test in sent}
    expected: dict[str, list[int]] = {}
    for test in tests.values():
        expected.setdefault(test["isp"], []).append(test["mbps"])
    assert summarise(db) == {isp: (len(each), sum(each)) for isp, each in expected.items()}
    newest: dict[str, str] = {}
    for router, test in sent:
        newest[router] = max(newest.get(router, ""), test["at"])
    found = {each.router: each.at.isoformat() for each in db.scan(LastTest, allow=True)}
    assert found == newest
    counted = {each.name: each.records for each in db.scan(Producer, allow=True)}
    assert counted == Counter(test["sent_by"] for _, test in sent)
