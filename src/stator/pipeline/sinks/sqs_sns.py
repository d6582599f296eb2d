"""``SqsSink`` and ``SnsSink``: changes as messages of a queue or a topic, ten per request.

FIFO queues and topics, whose names end with ``.fifo``, keep the order of the changes to each item.
The item's key becomes the message group, and the event id becomes the deduplication id. A message
sent twice within five minutes therefore appears once. Standard queues and topics keep no order and
may themselves deliver twice. In addition to its body, a message has the attributes ``id``, ``kind``
and ``table``, by which a topic's subscriptions can filter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Unpack

from stator.errors import ConfigurationError, SinkRefused, TryLater
from stator.pipeline.sinks.aws import AwsSink, aws_errors
from stator.pipeline.sinks.change_sink import Message, SinkOptions
from stator.pipeline.sinks.sink import Refusal
from stator.tables.argument_rules import checks_arguments

# The share of a request's bytes that is reserved for the attributes of one entry.
_ATTRIBUTES_BYTES = 400


class _BatchSink(AwsSink):
    """The common base of the SQS and SNS sinks, which differ only in a few parameter names."""

    operation: str
    target_parameter: str
    entries_parameter: str
    body_parameter: str

    @property
    def is_fifo(self) -> bool:
        """Whether the target is a FIFO queue or topic, which keeps an item's messages in order."""
        return self.target.endswith(".fifo")

    def send(self, messages: Sequence[Message]) -> Sequence[Refusal] | None:
        """Send in waves to a FIFO target, and in any order to a standard target."""
        return super().send(messages) if self.is_fifo else self.send_wave(messages)

    def send_request(self, messages: Sequence[Message]) -> list[Refusal]:
        entries, refusals = [], []
        for number, message in enumerate(messages):
            try:
                entries.append(self._entry(str(number), message))
            except UnicodeDecodeError as error:
                refusals.append(Refusal(message, SinkRefused(f"a message must be text: {error}")))
        if entries:
            request = {self.target_parameter: self.target, self.entries_parameter: entries}
            with aws_errors(self.target):
                reply = getattr(self.client, self.operation)(**request)
            refusals += [
                self._refusal(messages[int(each["Id"])], each) for each in reply.get("Failed", ())
            ]
        return refusals

    def _entry(self, number: str, message: Message) -> dict[str, Any]:
        record = message.record
        attributes = {"id": message.event_id, "kind": record.kind, "table": record.table}
        entry = {
            "Id": number,
            self.body_parameter: message.body.decode(),
            "MessageAttributes": {
                name: {"DataType": "String", "StringValue": text}
                for name, text in attributes.items()
            },
        }
        if self.is_fifo:
            entry["MessageGroupId"] = group_id(message)
            entry["MessageDeduplicationId"] = message.event_id[:128]
        return entry

    def _refusal(self, message: Message, failed: dict[str, Any]) -> Refusal:
        text = f"{self.target}: {failed.get('Code')}: {failed.get('Message', '')}"
        return Refusal(message, SinkRefused(text) if failed.get("SenderFault") else TryLater(text))


@checks_arguments("SqsSink")
class SqsSink(_BatchSink):
    """Sends changes to an SQS queue.

    A message may have up to 1 MiB, and a whole request no more, as AWS's service model says for
    SendMessageBatch. A queue may be configured for less.
    """

    service = "sqs"
    operation, target_parameter, entries_parameter = "send_message_batch", "QueueUrl", "Entries"
    body_parameter = "MessageBody"
    max_bytes = 1_048_576 - 10 * _ATTRIBUTES_BYTES

    def __init__(
        self,
        name: str,
        queue_url: str,
        *,
        region: str | None = None,
        endpoint: str | None = None,
        client: Any = None,
        **options: Unpack[SinkOptions],
    ) -> None:
        if "://" not in queue_url:
            raise ConfigurationError(
                f"{queue_url!r} is not the URL of a queue",
                hint="pass a URL like https://sqs.eu-west-1.amazonaws.com/123456789012/changes",
            )
        super().__init__(name, queue_url, options, region=region, endpoint=endpoint, client=client)


@checks_arguments("SnsSink")
class SnsSink(_BatchSink):
    """Sends changes to an SNS topic.

    A message may have up to 256 KiB, and a whole request no more, as AWS's service model says for
    PublishBatch. Set ``max_bytes`` for a topic with another MaximumMessageSize.
    """

    service = "sns"
    operation, target_parameter, entries_parameter = (
        "publish_batch",
        "TopicArn",
        "PublishBatchRequestEntries",
    )
    body_parameter = "Message"

    def __init__(
        self,
        name: str,
        topic_arn: str,
        *,
        max_bytes: int = 262_144,
        region: str | None = None,
        endpoint: str | None = None,
        client: Any = None,
        **options: Unpack[SinkOptions],
    ) -> None:
        if not topic_arn.startswith("arn:"):
            raise ConfigurationError(
                f"{topic_arn!r} is not the ARN of a topic",
                hint="pass an ARN like arn:aws:sns:eu-west-1:123456789012:changes.fifo",
            )
        reserved = 10 * _ATTRIBUTES_BYTES
        if not reserved < max_bytes <= 1_048_576:
            raise ConfigurationError(
                f"max_bytes={max_bytes} is out of range",
                hint=f"use a number from {reserved + 1:,} to 1,048,576",
            )
        super().__init__(name, topic_arn, options, region=region, endpoint=endpoint, client=client)
        self.max_bytes = max_bytes - reserved


def group_id(message: Message) -> str:
    """Return a hash of the item's key, to be used as message group id.

    The key itself may be too long or contain characters that a group id must not have.
    """
    return hashlib.sha256("\n".join(message.lane).encode()).hexdigest()
