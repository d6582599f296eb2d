"""A table into another: transformed, verified, through crashes."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.engine import Engine
from stator.errors import ConfigurationError, DataDiffers
from stator.pipeline.bulk.copy import Copy, CopyOptions, find_transform
from stator.testing import Killed

from .stock import ITEMS, Through, create, engine_target, stored, target_through


@pytest.fixture
def source() -> Any:
    with Engine.open() as made:
        create(made)
        for item in ITEMS.values():
            made.call("PutItem", {"TableName": "orders", "Item": item})
        yield made


def options(tmp_path: Path, **more: Any) -> CopyOptions:
    return CopyOptions(journal=tmp_path / "copy.journal", **more)


def test_a_table_is_made_copied_and_verified(source: Engine, tmp_path: Path) -> None:
    with Engine.open() as other:
        report = Copy(
            engine_target(source),
            target_through(Through(other), "copied"),
            options(tmp_path, create=True),
        ).run()
        assert (report.read, report.written, report.verified) == (60, 60, True)
        assert stored(other, "copied") == stored(source)
        again = Copy(
            engine_target(source), target_through(Through(other), "copied"), options(tmp_path)
        ).run()
        assert (again.written, again.verified) == (60, False)
        assert not (tmp_path / "copy.journal").exists()


def test_items_are_changed_and_dropped_and_what_fails_is_kept(
    source: Engine, tmp_path: Path
) -> None:
    def transform(item: Any) -> Any:
        number = int(item["quantity"]["N"])
        if number == 7:
            raise ValueError("seven")
        if number == 8:
            return {"other": {"S": "no key"}}
        if number == 9:
            return item | {"note": {"S": "x" * 500_000}}
        return None if number % 2 else item | {"seen": {"BOOL": True}}

    with Engine.open() as other:
        create(other)
        report = Copy(
            engine_target(source),
            target_through(Through(other)),
            options(tmp_path, dead_letters=tmp_path / "dead.jsonl"),
            transform=transform,
        ).run()
        assert (report.read, report.written, report.failed, report.dropped) == (60, 29, 3, 28)
        assert report.verified is True
        assert all(item["seen"] == {"BOOL": True} for item in stored(other).values())
        letters = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text().splitlines()]
        assert sorted(letter["reason"][:30] for letter in letters) == sorted(
            [
                "the transform failed: ValueErr",
                "the item lacks the key pk",
                "ValidationException: Item size",
            ]
        )


def test_a_target_that_differs_is_told(source: Engine, tmp_path: Path) -> None:
    def one_key(item: Any) -> Any:
        return item | {"pk": {"S": "same"}}

    with Engine.open() as other:
        create(other)
        with pytest.raises(DataDiffers, match="60 items were copied, and orders has 1"):
            Copy(
                engine_target(source),
                target_through(Through(other)),
                options(tmp_path),
                transform=one_key,
            ).run()


def test_a_table_is_not_copied_into_itself(source: Engine, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="are the same table"):
        Copy(engine_target(source), engine_target(source), options(tmp_path))


def test_a_transform_is_found_by_its_name() -> None:
    transform: object = find_transform("json:loads")
    assert transform is json.loads
    for name, message, hint in (
        ("json", "does not have the form", "module:function"),
        ("nowhere:x", "there is no module nowhere", "folder that contains nowhere"),
        ("json.nowhere:x", "there is no module json.nowhere", "PYTHONPATH"),
        ("json:x", "json has no x", "define x in json"),
        ("json:__name__", "cannot be called", "name a function"),
    ):
        with pytest.raises(ConfigurationError, match=message) as raised:
            find_transform(name)
        assert hint in str(raised.value.hint)


def test_a_transform_whose_module_fails_to_import_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "needs_more.py").write_text("import not_installed_anywhere\n")
    with pytest.raises(ConfigurationError, match="imports not_installed_anywhere, which is not"):
        find_transform("needs_more:upgrade")
    (tmp_path / "fails_itself.py").write_text("import json\njson.nothing\n")
    with pytest.raises(AttributeError, match="nothing"):
        find_transform("fails_itself:upgrade")


@settings(max_examples=25)
@given(deaths=st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=3))
def test_a_copy_is_taken_up_wherever_it_died(
    deaths: list[tuple[int, bool]], tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("copy")
    with Engine.open() as source, Engine.open() as other, pytest.MonkeyPatch.context() as patch:
        patch.setattr("stator.pipeline.bulk.job.write_job._CHECKPOINT_SECONDS", 0.0)
        patch.setattr("stator.pipeline.bulk.job.write_job._LOOK_SECONDS", 0.001)
        create(source)
        create(other)
        for item in ITEMS.values():
            source.call(
                "PutItem", {"TableName": "orders", "Item": item | {"pad": {"S": "x" * 60_000}}}
            )
        chosen = options(folder, segments=3, writers=2)
        for at, reads in deaths:
            calls = 0

            def die(operation: str, request: Any, at: int = at, reads: bool = reads) -> None:
                nonlocal calls
                calls += operation in ("Scan", "BatchWriteItem")
                if calls >= at and (operation == "Scan") == reads and operation != "DescribeTable":
                    raise Killed

            begun = (folder / "copy.journal").exists()
            try:
                Copy(
                    target_through(Through(source, die if reads else None)),
                    target_through(Through(other, None if reads else die), place="other"),
                    replace(chosen, resume=begun),
                ).run()
            except Killed:
                continue
            else:
                break
        begun = (folder / "copy.journal").exists()
        report = Copy(
            target_through(Through(source)),
            target_through(Through(other), place="other"),
            replace(chosen, resume=begun),
        ).run()
        assert report.written == 60
        assert report.verified is not None
        assert stored(other) == stored(source)


def test_a_copy_that_is_killed_again_and_again_gets_on(tmp_path: Path) -> None:
    """Each run sends five requests of a window of 2,000 rows, and is killed at the sixth."""
    with Engine.open() as source, Engine.open() as other:
        create(source)
        create(other)
        for number in range(2000):
            source.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": f"{number}"}}})
        sent = runs = 0

        def before(operation: str, request: Any) -> None:
            nonlocal sent
            sent += operation == "BatchWriteItem"
            if sent > 5:
                raise Killed

        for runs in range(300):  # noqa: B007 - shown when the test fails
            sent = 0
            with suppress(Killed):
                report = Copy(
                    target_through(Through(source)),
                    target_through(Through(other, before), place="other"),
                    options(tmp_path, resume=True, segments=2, readers=1, writers=1),
                ).run()
                break
        assert (report.read, report.written, report.verified) == (2000, 2000, True), runs
        assert stored(other) == stored(source)
        # A run wrote 125 items at most; the rate is that of the last run.
        assert report.written - report.written_before <= 125
        assert report.per_second == (report.written - report.written_before) / report.seconds


def test_a_copy_that_is_killed_while_it_verifies_goes_on_with_that(
    source: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run may read one segment of the target, and nothing is copied twice."""
    monkeypatch.setattr("stator.pipeline.bulk.copy._CHECKPOINT_SECONDS", 0.0)
    with Engine.open() as other:
        create(other)
        scans = 0
        segments: list[int] = []

        def before(operation: str, request: Any) -> None:
            nonlocal scans
            if operation == "Scan" and "Segment" in request:
                scans += 1
                if scans > 1:
                    raise Killed
                segments.append(request["Segment"])

        through = Through(other, before)
        for _ in range(4):
            scans = 0
            with suppress(Killed):
                report = Copy(
                    engine_target(source),
                    target_through(through),
                    options(tmp_path, resume=True, segments=4),
                ).run()
        assert segments == [0, 1, 2, 3]
        assert (report.read, report.written, report.verified) == (60, 60, True)
        writes = through.operations.count("BatchWriteItem")
        assert writes and not (tmp_path / "copy.journal").exists()


def test_a_copy_that_differs_starts_over(source: Engine, tmp_path: Path) -> None:
    with Engine.open() as other:
        create(other)

        def one_more(operation: str, request: Any) -> None:
            if operation == "Scan" and "Segment" in request:
                item = {"pk": {"S": "another"}}
                other.call("PutItem", {"TableName": "orders", "Item": item})

        with pytest.raises(DataDiffers, match="60 items were copied, and orders has 61"):
            Copy(
                engine_target(source), target_through(Through(other, one_more)), options(tmp_path)
            ).run()
        again = Copy(engine_target(source), target_through(Through(other)), options(tmp_path))
        assert again.run().written == 60


@pytest.mark.parametrize(
    "made",
    [5, "text", [], {"pk": {"S": 1}}, {"pk": "a"}, {"pk": {"S": "a"}, "x": object()}, {"pk": {}}],
)
def test_a_transform_that_returns_no_item_fails_that_item(
    made: Any, source: Engine, tmp_path: Path
) -> None:
    def transform(item: Any) -> Any:
        return made if item["quantity"] == {"N": "7"} else item

    with Engine.open() as other:
        create(other)
        report = Copy(
            engine_target(source),
            target_through(Through(other)),
            options(tmp_path, dead_letters=tmp_path / "dead.jsonl"),
            transform=transform,
        ).run()
        assert (report.read, report.written, report.failed) == (60, 59, 1)
        [letter] = map(json.loads, (tmp_path / "dead.jsonl").read_text().splitlines())
        assert letter["reason"]
