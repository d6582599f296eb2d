"""``KinesisSink``: changes as records of a Kinesis data stream, up to 500 per request.

The partition key is the item's key, so all changes to an item are in one shard, in order.
PutRecords may accept some records and not others, and promises no order within a request. A request
therefore has at most one change to each item, and the next change to an item is sent only after the
previous one is accepted. When a shard has no capacity left, the sink waits.
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
    """Sends changes to a Kinesis data stream.

    By AWS's service model, one record may have up to 10 MiB. A whole request, with its partition
    keys, may have no more. A stream accepts records of up to 1 MiB unless it is configured for
    more.
    """

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
        """Create the sink. ``stream`` is the name or the ARN of the data stream.

        The other parameters are those of ``AwsSink``.
        """
        super().__init__(name, stream, options, region=region, endpoint=endpoint, client=client)
        self._stream = {"StreamARN" if stream.startswith("arn:") else "StreamName": stream}

    def send_request(self, messages: Sequence[Message]) -> list[Refusal]:
        records = [
            {"Data": message.body, "PartitionKey": partition_key(message)} for message in messages
        ]
        with aws_errors(self.target):
            reply = self.client.put_records(**self._stream, Records=records)
        return [
            Refusal(message, self._error(result))
            for message, result in zip(messages, reply["Records"])
            if result.get("ErrorCode")
        ]

    def _error(self, result: dict[str, Any]) -> Exception:
        text = f"{self.target}: {result['ErrorCode']}: {result.get('ErrorMessage', '')}"
        return SinkRefused(text) if is_refusal(result["ErrorCode"]) else TryLater(text)


def partition_key(message: Message) -> str:
    """Return the partition key of a message: its key, or a hash of its key if that is too long."""
    if len(message.key) <= _KEY_LENGTH:
        return message.key
    return hashlib.sha256(message.key.encode()).hexdigest()
