"""The base of sinks that send to AWS services: a botocore client, and the meaning of its errors.

If the service will never accept a message (too long, forbidden characters), its change is at fault,
and the item is parked. After any other error the changes are sent again later. Examples are
throttling and server failures, but also a missing queue or permission: they are not the fault of a
change.
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

    A request has up to ``max_entries`` messages. All subclasses take the parameters ``region``,
    ``endpoint`` (a URL) and ``client`` (a client of botocore or boto3). Without ``client``, the
    sink creates one, with the configuration and credentials that boto3 would find.
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
        """Create the sink. ``target`` is a name, URL or ARN.

        If it is an ARN, its region is the default for ``region``.
        """
        super().__init__(name, options)
        self.target = target
        self.connect(region or _region_of(target), endpoint, client)

    def connect(self, region: str | None, endpoint: str | None, client: Any) -> None:
        """Set the botocore client to send with.

        If ``client`` is None, a client is created at the first request, with ``region`` and
        ``endpoint``.
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
        """Send the messages in one request. Return a refusal for each that was not delivered.

        May raise the errors that ``Sink.send`` may raise.
        """

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
        """Send messages in one request. Return a refusal for each that was not delivered.

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
    """Turn botocore's errors within the ``with`` block into SinkRefused or TryLater.

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
