"""Items of patterns are in the design's table, but in none of its indexes."""

from __future__ import annotations

from stator import Design, Entity, Query, find, ident, read
from stator.patterns import Links, Outbox, Tree
from tests.patterns.crashing import every_item
from tests.targets import Target


class Mail(Entity):
    """Its fields have names that a pattern might give its attributes, with other types."""

    mail_id: str = ident()
    parent: int
    topic: int
    key: int
    due: str


class Folder(Entity):
    folder_id: str = ident()
    parent: str = "a node has its entity's fields too"
    topic: str = "t"


@read(rps=10)
def mail_by_id(mail_id: str) -> Query[Mail]:
    return find(Mail).where(Mail.mail_id == mail_id)


@read(rps=10, returns=10)
def replies(parent: int) -> Query[Mail]:
    return find(Mail).where(Mail.parent == parent)


@read(rps=10, returns=10)
def about(topic: int) -> Query[Mail]:
    return find(Mail).where(Mail.topic == topic).newest_first(Mail.due)


@read(rps=10, returns=10)
def with_key(key: int) -> Query[Mail]:
    return find(Mail).where(Mail.key == key)


def test_no_index_contains_an_item_of_a_pattern(target: Target) -> None:
    db = target.connect(
        Design(
            "mails",
            [Mail],
            [mail_by_id, replies, about, with_key],
            volumes={Mail: 100},
            layout="single-table",
        )
    )
    indexed = {name for table in db.context.schema.plan.tables for name, _ in table.attributes}
    mail = Mail(mail_id="m", parent=1, topic=2, key=3, due="x")
    with db.transaction() as tx:
        tx.create(mail)
        Outbox(db, "mails").add(tx, topic="new", body=1, key="m")
    tree = Tree(db, Folder)
    tree.add(Folder(folder_id="f"))
    tree.add(Folder(folder_id="g"), "f")
    tree.move("g")
    Links(db, Mail, Mail, copy_left=[Mail.topic]).link(mail, mail, parent=7)
    for query in (replies(1), about(2), with_key(3)):
        assert [found.mail_id for found in db.fetch(query)] == ["m"]
    place = db.context.schema.place
    for item in every_item(db):
        if not item[place.partition]["S"].startswith(("MAIL", "m")):
            assert not (item.keys() & indexed) - {place.partition, place.sort}
