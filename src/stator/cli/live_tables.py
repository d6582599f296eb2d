"""Reads live tables at any DynamoDB address through botocore, for ``stator diff`` and ``infer``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from stator.errors import ConfigurationError, LiveTableUnreachable

Item = dict[str, Any]
_ADDRESS_HINT = "write http://localhost:8000 for an endpoint, or aws://eu-west-1 for AWS"


class LiveTables:
    """The tables at an address.

    ``http(s)://host:port`` is any endpoint. ``aws://region`` is AWS, with the credentials that
    botocore finds. Every failure of a call raises LiveTableUnreachable.
    """

    def __init__(
        self, address: str, *, region: str | None = None, profile: str | None = None
    ) -> None:
        self.address = address
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https", "aws") or not parts.netloc:
            raise ConfigurationError(f"{address} is not a DynamoDB address", hint=_ADDRESS_HINT)
        self._client = _client(address, parts.scheme, parts.netloc, region, profile)
        self.unread: list[str] = []
        """What ``describe_fully`` could not read, and why."""

    def describe(self, table: str) -> Item | None:
        """Return the description of a table, or None if there is no such table."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            found: Item = self._client.describe_table(TableName=table)["Table"]
        except ClientError as error:
            if error.response["Error"]["Code"] == "ResourceNotFoundException":
                return None
            raise self._unreachable(error) from None
        except BotoCoreError as error:
            raise self._unreachable(error) from None
        return found

    def describe_fully(self, table: str) -> Item | None:
        """Return the description of a table with its expiry and recovery, or None.

        A member is left out, and noted in ``unread``, if the endpoint cannot tell or the caller may
        not ask.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        found = self.describe(table)
        if found is None:
            return None
        client = self._client
        members: dict[str, Callable[[], Any]] = {
            "TimeToLiveDescription": lambda: client.describe_time_to_live(TableName=table)[
                "TimeToLiveDescription"
            ],
            "PointInTimeRecoveryDescription": lambda: client.describe_continuous_backups(
                TableName=table
            )["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {}),
        }
        for name, ask in members.items():
            try:
                found[name] = ask()
            except (BotoCoreError, ClientError) as error:
                self.unread.append(f"{name} of {table}: {error}")
        return found

    def names(self) -> list[str]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            pages = self._client.get_paginator("list_tables").paginate()
            return [name for page in pages for name in page["TableNames"]]
        except (BotoCoreError, ClientError) as error:
            raise self._unreachable(error) from None

    def sample(self, table: str, count: int, segments: int = 8) -> Iterator[Item]:
        """Yield about ``count`` items of a table, the same number from each of several segments."""
        from botocore.exceptions import BotoCoreError, ClientError

        per_segment = -(-count // segments)
        try:
            for segment in range(segments):
                yield from self._segment(table, segment, segments, per_segment)
        except (BotoCoreError, ClientError) as error:
            raise self._unreachable(error) from None

    def _segment(self, table: str, segment: int, segments: int, count: int) -> Iterator[Item]:
        request: Item = {"TableName": table, "Segment": segment, "TotalSegments": segments}
        left = count
        while left > 0:
            page = self._client.scan(**request, Limit=left)
            yield from page["Items"]
            left -= len(page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _unreachable(self, error: Exception) -> LiveTableUnreachable:
        return LiveTableUnreachable(f"{self.address}: {error}", hint=_hint(error))


def _hint(error: Exception) -> str:
    name = type(error).__name__
    if name == "EndpointConnectionError":
        return "check the address, or start an engine there: `stator serve` listens on port 8000"
    if "Credentials" in name:
        return "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return "check the address, the region and the permissions"


def _client(address: str, scheme: str, netloc: str, region: str | None, profile: str | None) -> Any:
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    config = Config(
        connect_timeout=5, read_timeout=60, retries={"mode": "standard", "max_attempts": 3}
    )
    try:
        session = Session(profile=profile)
        if scheme == "aws":
            return session.create_client("dynamodb", region_name=netloc, config=config)
        if session.get_credentials() is None:  # a local endpoint accepts any credentials
            session.set_credentials("local", "local")
        return session.create_client(
            "dynamodb",
            region_name=region or session.get_config_variable("region") or "us-east-1",
            endpoint_url=address,
            config=config,
        )
    except (BotoCoreError, ValueError) as error:
        raise ConfigurationError(f"{address}: {error}", hint=_ADDRESS_HINT) from None
