"""The mark of a rebuild on a view's head, after the rebuild failed or its process ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from stator import Db, Engine, TableSettings, connect
from stator.errors import StreamError
from stator.pipeline import StreamApp, View, count
from stator.pipeline.views.rebuild.builder_process import this_process
from stator.pipeline.views.rebuild.rebuild import Rebuild, RebuildOptions, rebuild_together
from stator.pipeline.workers.options import WorkerOptions

from .fleet import Test, a_test, fleet

pytestmark = pytest.mark.usefixtures("attentive")

QUICK = WorkerOptions(start="oldest", idle_seconds=0.02)
AT_ONCE = RebuildOptions(settle_seconds=0.0, wait_seconds=0.0, grace_seconds=0.0)
PATIENT = RebuildOptions(settle_seconds=0.0, grace_seconds=0.0)


def view_of(name: str) -> View:
    return View(name, of=Test, by=[Test.isp], tests=count())


@pytest.fixture
def db(engine: Engine) -> Iterator[Db]:
    with connect(fleet, engine) as opened:
        opened.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        yield opened


def app_of(*views: View) -> StreamApp:
    app = StreamApp(fleet, "summaries")
    for view in views:
        app.add(view)
    return app


def rebuild(db: Db, *views: View, options: RebuildOptions = PATIENT) -> list[int]:
    builds = [Rebuild(view.in_database(db.context), options) for view in views]
    return [each.generation for each in db.run(rebuild_together(builds))]


def counted(db: Db, view: View) -> Any:
    row = view.on(db).get(isp="acme")
    return row and row.tests


def test_a_rebuild_that_failed_leaves_the_view_free_for_the_next(db: Db) -> None:
    view = view_of("by_isp")
    app = app_of(view)
    db.put(a_test(1))
    with app.start(db, QUICK) as running:
        running.catch_up(20)
    for _ in range(2):
        with pytest.raises(StreamError, match="have no worker"):
            rebuild(db, view, options=AT_ONCE)
        head = db.run(view.in_database(db.context).heads.load())
        assert head is not None and head.building is None  # workers write to one generation again
    db.put(a_test(2))
    with app.start(db, QUICK) as running:
        running.catch_up(20)
        # Two generations were begun and left: their numbers are not used again.
        assert rebuild(db, view) == [4]
        db.put(a_test(3))
        running.catch_up(20)
    assert counted(db, view) == 3


def test_a_view_without_a_head_frees_the_views_that_were_to_be_rebuilt_with_it(db: Db) -> None:
    first, second = view_of("first"), view_of("second")
    db.put(a_test(1))
    with app_of(first).start(db, QUICK) as running:
        running.catch_up(20)
        with pytest.raises(StreamError, match="no worker has started the view second"):
            rebuild(db, first, second)
        assert rebuild(db, first) == [3]
    assert counted(db, first) == 1


def ended_process() -> str:
    """The name of a process of this machine that has ended."""
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    child.wait()
    return this_process(child.pid)


@pytest.mark.parametrize(
    ("builder", "taken_over"),
    [
        (ended_process, True),
        (this_process, False),
        (lambda: "elsewhere" + ended_process(), False),
        (lambda: "", False),  # a version that stored no process
        (lambda: "nonsense", False),
    ],
    ids=["ended", "running", "of-another-host", "unnamed", "nonsense"],
)
def test_the_mark_of_a_process_that_has_ended_is_taken_over(
    db: Db, builder: Any, taken_over: bool
) -> None:
    view = view_of("by_isp")
    db.put(a_test(1))
    with app_of(view).start(db, QUICK) as running:
        running.catch_up(20)
        killed = Rebuild(view.in_database(db.context), PATIENT, process=builder())
        db.run(killed.take_head())
        if taken_over:
            assert rebuild(db, view) == [3]
            assert counted(db, view) == 1
            return
        with pytest.raises(StreamError, match="is rebuilding the view by_isp") as refused:
            rebuild(db, view)
        assert refused.value.hint is not None and "if it has died, try again in " in str(
            refused.value.hint
        )
        head = db.run(view.in_database(db.context).heads.load())
        assert head is not None and head.building == 2  # the other rebuild's mark stands


def test_a_builder_that_was_taken_over_cannot_switch_the_view(db: Db) -> None:
    view = view_of("by_isp")
    with app_of(view).start(db, QUICK) as running:
        running.catch_up(20)
        old = Rebuild(view.in_database(db.context), PATIENT, process=ended_process())
        db.run(old.take_head())
        assert rebuild(db, view) == [3]
        db.run(old.release())
        head = db.run(view.in_database(db.context).heads.load())
        assert head is not None and (head.generation, head.building) == (3, None)
