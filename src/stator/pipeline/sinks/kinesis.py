"""``KinesisSink``: changes as records of a Kinesis data stream, up to 500 to a request.

The partition key is the item's key, so all its changes are in one shard, in their order. PutRecords may take some records and not others, and promises no order among
those of one request; so each request has one change of an item at most, and the next goes out when it was taken. What a shard has no capacity for is waited for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, Unpack

from stator.errors import SinkRefused, TryLater
from stator.pipeline.sinks.aws import AwsSink, aws_errors, is_refusal
from stator.pipeline.sinks.change_sink import Message, SinkOptions
from stator.pipeline.sinks.sink import Refusal

_KEY_LENGTH: Final = 256


class KinesisSink(AwsSink):
    """10 MiB for a record and for a request, keys included, says the model of PutRecords; a stream takes records of 1 MiB unless it is set to more."""

    service = "kinesis"
    max_entries = 500
    max_bytes = 10_485_760 - 500 * _KEY_LENGTH * 4

    def __init__(
        self,
        name: str,
        stream: str,
        *,
        region: str | None = None,
        endpoint: str | None = None,
        client: Any = None,
        **options: Unpack[SinkOptions],
    ) -> None:
        """``stream`` is its name or its ARN."""
        super().__init__(name, options)
        is_arn = stream.startswith("arn:")
        self._stream = {"StreamARN" if is_arn else "StreamName": stream}
        self._shown = stream
        self.connect(region or (stream.split(":")[3] if is_arn else None), endpoint, client)

    def send_request(self, messages: Sequence[Message]) -> list[Refusal]:
        records = [
            {"Data": message.body, "PartitionKey": partition_key(message)} for message in messages
        ]
        with aws_errors(self._shown):
            reply = self.client.put_records(**self._stream, Records=records)
        return [
            Refusal(message, self._error(result))
            for message, result in zip(messages, reply["Records"])
            if result.get("ErrorCode")
        ]

    def _error(self, result: dict[str, Any]) -> Exception:
        text = f"{self._shown}: {result['ErrorCode']}: {result.get('ErrorMessage', '')}"
        return SinkRefused(text) if is_refusal(result["ErrorCode"]) else TryLater(text)


def partition_key(message: Message) -> str:
    """The key itself where it is short enough, for people who look at records; else something that stands for it."""
    if len(message.key) <= _KEY_LENGTH:
        return message.key
    return hashlib.sha256(message.key.encode()).hexdigest()
