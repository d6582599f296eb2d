"""Views on DynamoDB Local: the same requests come to the same results."""

from __future__ import annotations

import random

from stator import TableSettings, connect
from stator.pipeline import StreamApp
from stator.pipeline.views.rebuild.rebuild import RebuildOptions

from ...dynamodb_local import dynamodb_local
from .fleet import Test, a_test, fleet
from .test_views import QUICK
from .view_app import by_isp, hours


def test_a_view_is_kept_and_built_anew_on_dynamodb_local() -> None:
    chance = random.Random(3)
    with dynamodb_local() as url, connect(fleet, url) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        app = StreamApp(fleet, "summaries")
        app.add(hours)
        app.add(by_isp)
        tests: dict[str, Test] = {}
        with app.start(db, QUICK) as running:
            for _ in range(50):
                made = a_test(
                    chance.randrange(40),
                    latency=chance.randrange(1, 500) / 4,
                    ok=chance.random() < 0.8,
                )
                tests[made.test_id] = made
                db.put(made)
            for number in range(5):
                tests.pop(f"t{number}", None)
                db.delete(Test, test_id=f"t{number}")
            running.catch_up(40)
            inside = [each for each in tests.values() if each.ok]
            for generation in (1, 2):
                [row] = hours.on(db).all(isp="acme")
                assert (row.tests, row.spread.count) == (len(inside), len(inside))
                assert row.worst == max(each.latency_ms or 0 for each in inside)
                assert len(list(by_isp.on(db).find(isp="acme"))) == len(tests)
                if generation == 1:
                    rebuilt = hours.on(db).rebuild(
                        RebuildOptions(settle_seconds=0.2, grace_seconds=0.0)
                    )
                    assert (rebuilt.generation, rebuilt.scanned) == (2, len(tests))
