"""A Python script that makes the tables with boto3, and changes nothing where they are."""

from __future__ import annotations

import json

from stator.design.export.source import Exported, ExportSource


def export(source: ExportSource) -> Exported:
    requests = [table.create_request() for table in source.tables]
    expiring = {table.name: name for table in source.tables if (name := table.ttl) is not None}
    text = f'''"""Makes the tables of {source.design.name}. Made by `stator export-design boto3`.

Region, credentials and endpoint come from the environment, as boto3 finds them:
AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000 for `stator serve`.
"""

import boto3

TABLES = {_literal(requests)}

EXPIRES_BY = {_literal(expiring)}


def create_tables(client):
    for request in TABLES:
        name = request["TableName"]
        try:
            client.create_table(**request)
        except client.exceptions.ResourceInUseException:
            print(f"{{name}} is there already")
            continue
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={{"Delay": 2}})
        if name in EXPIRES_BY:
            expiry = {{"AttributeName": EXPIRES_BY[name], "Enabled": True}}
            client.update_time_to_live(TableName=name, TimeToLiveSpecification=expiry)
        print(f"{{name}} is made")


if __name__ == "__main__":
    create_tables(boto3.client("dynamodb"))
'''
    return Exported(text)


def _literal(value: object) -> str:
    """Text, lists and maps are written the same in JSON and in Python."""
    return json.dumps(value, indent=4, ensure_ascii=False)
