"""The identity of a topic: a topic that was deleted and created again is another log.

Its offsets start again at 0, so the marks in the items would refuse its records, silently. Kafka
also forgets what groups had committed. So the first run of an ingest stores the id of each topic:

    PK  INGEST#tests#LOG#readings    SK  readings    id  "9ZHDv0LbQdmQzN..."
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stator.errors import ConditionFailed, ConfigurationError
from stator.pipeline.ingest.routes.route import DeclaredRoute
from stator.tables.db import Db


def check_topic_ids(
    db: Db, app: str, routes: Iterable[DeclaredRoute], ids: Mapping[str, str]
) -> None:
    """Store the ids of topics that are new to an app, and compare the others.

    Raises ConfigurationError for a topic whose id differs from the stored one.
    """
    place = db.context.schema.place
    for source, topic in sorted({(each.options.source, each.options.topic) for each in routes}):
        if topic not in ids:
            continue
        item = {**place.key(f"INGEST#{app}#LOG#{source}", topic), "id": {"S": ids[topic]}}
        try:
            db.call(
                "PutItem",
                {
                    "TableName": place.table,
                    "Item": item,
                    "ConditionExpression": "attribute_not_exists(#id) OR #id = :id",
                    "ExpressionAttributeNames": {"#id": "id"},
                    "ExpressionAttributeValues": {":id": item["id"]},
                },
            )
        except ConditionFailed:
            raise ConfigurationError(
                f"topic {topic} was deleted and created again since ingest {app} first read it: its"
                " offsets start again, and the items' guards would refuse its records",
                hint=f'pass a new name to its routes, such as source="{topic}-2"',
            ) from None
