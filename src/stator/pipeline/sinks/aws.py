"""The base of sinks that send to AWS services: a botocore client, and the meaning of its errors.

A request that can never be accepted (too long, forbidden characters) is the fault of a change.
After every other error the sink waits and tries again: throttling and server failures, but also a
missing queue or permission, for which no change should be parked.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from stator.errors import SinkRefused, TryLater
from stator.pipeline.sinks.change_sink import Message, SinkOptions
from stator.pipeline.sinks.sink import LazyResource, Refusal, batches
from stator.pipeline.sinks.waves import WaveSink

# As the services' models name them. SNS and Kinesis append "Exception" to some.
REFUSALS: Final = frozenset(
    {
        "BatchRequestTooLong",
        "InvalidArgument",
        "InvalidAttributeValue",
        "InvalidBatchEntryId",
        "InvalidMessageContents",
        "InvalidParameter",
        "InvalidParameterValue",
        "MessageTooLong",
        "Validation",
        "ValidationError",
    }
)
_RETRIES: Final = 3


class AwsSink(WaveSink):
    """The base of sinks that send to AWS. A subclass defines ``send_request``.

    A request has up to ``max_entries`` messages. Constructors of subclasses take the same
    parameters: ``region``, ``endpoint`` and ``client``, a client of botocore or boto3. Without a
    client, one is created the way boto3 would.
    """

    service: str
    max_entries: int = 10

    def __init__(
        self,
        name: str,
        target: str,
        options: SinkOptions,
        *,
        region: str | None,
        endpoint: str | None,
        client: Any,
    ) -> None:
        """``target`` is a name, URL or ARN; an ARN also sets the default region."""
        super().__init__(name, options)
        self.target = target
        self.connect(region or _region_of(target), endpoint, client)

    def connect(self, region: str | None, endpoint: str | None, client: Any) -> None:
        """Set the client to send with: the given one, or one that is created at the first request.

        ``region`` and ``endpoint`` are for the created one.
        """
        self._client = LazyResource[Any](
            lambda: client or _new_client(self.service, region, endpoint)
        )
        self._is_own = client is None

    @property
    def client(self) -> Any:
        """The botocore client. The first use creates it."""
        return self._client.get()

    def close(self) -> None:
        client = self._client.take() if self._is_own else None
        if client is not None:
            client.close()

    @abstractmethod
    def send_request(self, messages: Sequence[Message]) -> list[Refusal]:
        """Call the service once and return the refused messages. May raise, like ``send``."""

    def send_wave(self, messages: Sequence[Message]) -> list[Refusal]:
        refusals: list[Refusal] = []
        away: TryLater | None = None
        for request in batches(messages, self.max_entries, self.max_bytes):
            if away is None:
                try:
                    refusals += self._isolate(request)
                    continue
                except TryLater as error:
                    away = error
            refusals += [Refusal(message, away) for message in request]
        return refusals

    def _isolate(self, messages: list[Message]) -> list[Refusal]:
        """Send a request and return the refused messages.

        If the service refuses the whole request, send its halves to find the message at fault.
        """
        try:
            return self.send_request(messages)
        except SinkRefused as error:
            if len(messages) == 1:
                return [Refusal(messages[0], error)]
        middle = len(messages) // 2
        return self._isolate(messages[:middle]) + self._isolate(messages[middle:])


def is_refusal(code: str) -> bool:
    return code.rpartition(".")[2].removesuffix("Exception") in REFUSALS


@contextmanager
def aws_errors(what: str) -> Iterator[None]:
    """Turn botocore's errors within the block into SinkRefused or TryLater.

    ``what`` names the target of the requests in the error messages.
    """
    from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

    try:
        yield
    except ParamValidationError as error:
        raise SinkRefused(f"{what}: {error}") from error
    except BotoCoreError as error:
        raise TryLater(f"{what} does not respond: {error}") from error
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if is_refusal(code):
            raise SinkRefused(f"{what}: {error}") from error
        raise TryLater(
            f"{what}: {error}", hint="check its name, the region and the permissions"
        ) from error


def _region_of(target: str) -> str | None:
    return (target.split(":")[3] or None) if target.startswith("arn:") else None


def _new_client(service: str, region: str | None, endpoint: str | None) -> Any:
    import botocore.session
    from botocore.config import Config

    config = Config(
        retries={"mode": "standard", "max_attempts": _RETRIES}, connect_timeout=5, read_timeout=20
    )
    return botocore.session.get_session().create_client(
        service, region_name=region, endpoint_url=endpoint, config=config
    )
