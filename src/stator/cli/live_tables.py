"""Live tables at any DynamoDB address, through botocore, and clients of the services beside them.

``stator diff``, ``infer``, ``advise`` and ``scale`` use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from stator.errors import ConfigurationError, LiveTableUnreachable

Item = dict[str, Any]
_ADDRESS_HINT = "write http://localhost:8000 for an endpoint, or aws://eu-west-1 for AWS"
_DEFAULT_REGION = "us-east-1"


class LiveTables:
    """The tables at an address.

    ``http(s)://host:port`` is any endpoint. ``aws://region`` is AWS, with the credentials that
    botocore finds. Every failure of a call raises LiveTableUnreachable.
    """

    def __init__(
        self, address: str, *, region: str | None = None, profile: str | None = None
    ) -> None:
        self.address = address
        self._client = AwsClients(address, region=region, profile=profile).client("dynamodb")
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
        """Return a table's description together with its TTL and recovery settings.

        Returns None if there is no such table. If the endpoint fails to report one of the two
        settings, the setting is left out and the error is added to ``unread``.
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


class AwsClients:
    """Clients for one address.

    ``http(s)://host:port`` is any endpoint, which all services share. ``aws://region`` is AWS, with
    the credentials that botocore finds.
    """

    def __init__(
        self, address: str, *, region: str | None = None, profile: str | None = None
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https", "aws") or not parts.netloc:
            raise ConfigurationError(f"{address} is not a DynamoDB address", hint=_ADDRESS_HINT)
        self.address = address
        self._on_aws = parts.scheme == "aws"
        self._region = parts.netloc if self._on_aws else region
        self._session = _session(address, profile, is_local=not self._on_aws)

    @property
    def region(self) -> str:
        """The region of the address, or else of the configuration, or else us-east-1."""
        found: str | None = self._region or self._session.get_config_variable("region")
        return found or _DEFAULT_REGION

    def client(self, service: str) -> Any:
        """Return a client for a service such as ``dynamodb`` or ``cloudwatch``."""
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        config = Config(
            connect_timeout=5, read_timeout=60, retries={"mode": "standard", "max_attempts": 3}
        )
        try:
            return self._session.create_client(
                service,
                region_name=self.region,
                endpoint_url=None if self._on_aws else self.address,
                config=config,
            )
        except (BotoCoreError, ValueError) as error:
            raise ConfigurationError(f"{self.address}: {error}", hint=_ADDRESS_HINT) from None


def _session(address: str, profile: str | None, *, is_local: bool) -> Any:
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    try:
        session = Session(profile=profile)
        if is_local and session.get_credentials() is None:  # it accepts any credentials
            session.set_credentials("local", "local")
    except (BotoCoreError, ValueError) as error:
        raise ConfigurationError(f"{address}: {error}", hint=_ADDRESS_HINT) from None
    return session
