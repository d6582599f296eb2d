"""A list of a pattern object is complete, however long it is: nothing ends it silently."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

from stator import Entity, connect, ident
from stator.patterns import Leaderboard, Links, Outbox, Series, Tree
from stator.tables.db import Db
from tests.patterns.meters import Reading, reading
from tests.patterns.school import Course, Student, school
from tests.tables.shop import shop

# More than a page of a thousand, which is where caps tend to be.
_COUNT: Final = 1_100
_PAGE: Final = 150


class Folder(Entity):
    folder_id: str = ident()


def _links(db: Db) -> Any:
    links = Links(db, Student, Course, name="enrolments")
    anna = Student(student_id="anna", name="Anna")
    courses = [Course(course_id=f"c{n:04}", title="x") for n in range(_COUNT)]
    db.put(anna)
    db.write_many(courses)
    for course in courses:
        links.link(anna, course)
    return links


def _of_left(links: Any) -> list[str]:
    return [each.right for each in links.of_left("anna")]


def _link_pages(links: Any) -> list[str]:
    return [each.right for each in _walk(lambda **page: links.page(left="anna", **page))]


def _series(db: Db) -> Any:
    series = Series(db, Reading, by=Reading.sensor_id, at=Reading.at, bucket="hour", shards=3)
    series.add_many([reading(n) for n in range(_COUNT)])
    return series


def _readings(series: Any) -> list[Any]:
    return [each.at for each in series.range("s1")]


def _latest_readings(series: Any) -> list[Any]:
    return [each.at for each in series.latest("s1", _COUNT)]


def _reading_pages(series: Any) -> list[Any]:
    return [each.at for each in _walk(lambda **page: series.page("s1", **page))]


def _board(db: Db) -> Any:
    board = Leaderboard(db, "board", shards=3)
    for number in range(_COUNT):
        board.set_score(f"m{number}", number)
    return board


def _top(board: Any) -> list[str]:
    return [each.member for each in board.top(_COUNT, consistent=True)]


def _around(board: Any) -> list[str]:
    found = board.around("m0", _COUNT, consistent=True)
    return [each.member for each in found]


def _board_pages(board: Any) -> list[str]:
    pages = _walk(lambda **page: board.page(consistent=True, exact=False, **page))
    return [each.member for each in pages]


def _tree(db: Db) -> Any:
    tree = Tree(db, Folder)
    tree.add(Folder(folder_id="root"))
    for number in range(_COUNT):
        tree.add(Folder(folder_id=f"f{number}"), parent="root")
    return tree


def _children(tree: Any) -> list[Any]:
    return [each.entity.folder_id for each in tree.children("root")]


def _descendants(tree: Any) -> list[Any]:
    return [each.entity.folder_id for each in tree.descendants("root")]


def _outbox(db: Db) -> Any:
    outbox = Outbox(db, "mail", shards=2, max_attempts=1)
    for number in range(_COUNT):
        with db.transaction() as tx:
            outbox.add(tx, topic="t", body=number, key=f"k{number}")
    outbox.relay(_refuse, limit=2 * _COUNT)
    return outbox


def _refuse(_: Any) -> None:
    raise ValueError("not today")


def _parked(outbox: Any) -> list[Any]:
    return [each.body for each in outbox.parked()]


def _walk(page: Callable[..., Any]) -> Iterable[Any]:
    cursor: str | None = None
    while True:
        found = page(limit=_PAGE, cursor=cursor)
        yield from found
        cursor = found.cursor
        if cursor is None:
            return


@pytest.mark.parametrize(
    ("made_by", "lists"),
    [
        (_links, [_of_left, _link_pages]),
        (_series, [_readings, _latest_readings, _reading_pages]),
        (_board, [_top, _around, _board_pages]),
        (_tree, [_children, _descendants]),
        (_outbox, [_parked]),
    ],
    ids=["links", "series", "leaderboard", "tree", "outbox"],
)
def test_a_list_has_everything_that_is_stored(
    made_by: Callable[[Db], Any], lists: list[Callable[[Any], list[Any]]]
) -> None:
    design = school() if made_by is _links else shop()
    with connect(design) as db:
        db.ensure()
        made = made_by(db)
        for read in lists:
            found = read(made)
            assert len(found) == len(set(found)) == _COUNT, read.__name__
