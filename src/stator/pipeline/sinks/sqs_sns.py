"""``SqsSink`` and ``SnsSink``: changes as messages of a queue or a topic, ten to a request.

FIFO queues and topics, whose names end with ``.fifo``, keep the order of each item: its key is the message group, and the event id the deduplication id, so that what is
sent twice within five minutes is there once. Standard ones have no order, and may deliver twice by themselves. Beside its body, a message has the attributes ``id``,
``kind`` and ``table``, by which subscriptions of a topic can filter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Unpack

from stator.errors import ConfigurationError, SinkRefused, TryLater
from stator.pipeline.sinks.aws import AwsSink, aws_errors
from stator.pipeline.sinks.change_sink import Message, SinkOptions
from stator.pipeline.sinks.sink import Refusal

# What an entry's attributes take of the bytes that a request may have.
_ATTRIBUTES_BYTES = 400


class _BatchSink(AwsSink):
    """SQS and SNS differ in the names of a few parameters."""

    operation: str
    target_parameter: str
    entries_parameter: str
    body_parameter: str
    target: str

    @property
    def is_fifo(self) -> bool:
        return self.target.endswith(".fifo")

    def send(self, messages: Sequence[Message]) -> Sequence[Refusal] | None:
        """Without an order there is nothing to wait for."""
        return super().send(messages) if self.is_fifo else self.send_wave(messages)

    def send_request(self, messages: Sequence[Message]) -> list[Refusal]:
        entries, refusals = [], []
        for number, message in enumerate(messages):
            try:
                entries.append(self._entry(str(number), message))
            except UnicodeDecodeError as error:
                refusals.append(Refusal(message, SinkRefused(f"a message is text: {error}")))
        if entries:
            request = {self.target_parameter: self.target, self.entries_parameter: entries}
            with aws_errors(self.target):
                reply = getattr(self.client, self.operation)(**request)
            refusals += [
                self._failed(messages[int(each["Id"])], each) for each in reply.get("Failed", ())
            ]
        return refusals

    def _entry(self, number: str, message: Message) -> dict[str, Any]:
        record = message.record
        told_of = {"id": message.event_id, "kind": record.kind, "table": record.table}
        entry = {
            "Id": number,
            self.body_parameter: message.body.decode(),
            "MessageAttributes": {
                name: {"DataType": "String", "StringValue": text} for name, text in told_of.items()
            },
        }
        if self.is_fifo:
            entry["MessageGroupId"] = group_id(message)
            entry["MessageDeduplicationId"] = message.event_id[:128]
        return entry

    def _failed(self, message: Message, failed: dict[str, Any]) -> Refusal:
        text = f"{self.target}: {failed.get('Code')}: {failed.get('Message', '')}"
        return Refusal(message, SinkRefused(text) if failed.get("SenderFault") else TryLater(text))


class SqsSink(_BatchSink):
    """1 MiB for a message and for a request, says the model of SendMessageBatch; a queue may be set to less."""

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
        super().__init__(name, options)
        if "://" not in queue_url:
            raise ConfigurationError(
                f"{queue_url!r} is no URL of a queue",
                hint="as in https://sqs.eu-west-1.amazonaws.com/123456789012/changes.fifo",
            )
        self.target = queue_url
        self.connect(region, endpoint, client)


class SnsSink(_BatchSink):
    """256 KiB for a message and for a request, says the model of PublishBatch; ``max_bytes`` is for a topic whose MaximumMessageSize is another."""

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
        super().__init__(name, options)
        if not topic_arn.startswith("arn:"):
            raise ConfigurationError(
                f"{topic_arn!r} is no ARN of a topic",
                hint="as in arn:aws:sns:eu-west-1:123456789012:changes.fifo",
            )
        reserved = 10 * _ATTRIBUTES_BYTES
        if not reserved < max_bytes <= 1_048_576:
            raise ConfigurationError(
                f"max_bytes={max_bytes}", hint=f"{reserved + 1:,} to 1,048,576"
            )
        self.max_bytes = max_bytes - reserved
        self.target = topic_arn
        self.connect(region or topic_arn.split(":")[3] or None, endpoint, client)


def group_id(message: Message) -> str:
    """At most 128 letters, digits and punctuation, which a key need not be."""
    return hashlib.sha256("\n".join(message.lane).encode()).hexdigest()
