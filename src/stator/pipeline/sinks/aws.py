"""What the sinks into AWS's services share: a client of botocore's, and what its errors say of a change.

A request that cannot be right (too long, not allowed characters) is the fault of a change. Everything else is waited for: throttling and failures, and also a queue
that is not there or a permission that is missing, for which no change is to be parked.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from stator.errors import SinkRefused, TryLater
from stator.pipeline.sinks.change_sink import Message
from stator.pipeline.sinks.sink import LazyResource, Refusal, batches
from stator.pipeline.sinks.waves import WaveSink

# As the services' models name them, with and without the ending that SNS and Kinesis give them.
REFUSALS: Final = frozenset(
    {
        "InvalidMessageContents", "InvalidParameterValue", "InvalidParameter", "InvalidArgument", "InvalidAttributeValue",
        "BatchRequestTooLong", "Validation", "ValidationError", "InvalidBatchEntryId", "MessageTooLong",
    }
)  # fmt: skip
_RETRIES: Final = 3


class AwsSink(WaveSink):
    """Defines ``send_request``, for up to ``max_entries`` messages."""

    service: str
    max_entries: int = 10

    def connect(self, region: str | None, endpoint: str | None, client: Any) -> None:
        """``client`` is one of botocore's or boto3's; without, it is made as boto3 would make it."""
        self._client = LazyResource[Any](lambda: client or _made(self.service, region, endpoint))
        self._is_own = client is None

    @property
    def client(self) -> Any:
        return self._client.get()

    def close(self) -> None:
        made = self._client.take() if self._is_own else None
        if made is not None:
            made.close()

    @abstractmethod
    def send_request(self, messages: Sequence[Message]) -> list[Refusal]:
        """One call of the service; those that were not taken. As ``send``, it may raise."""

    def send_wave(self, messages: Sequence[Message]) -> list[Refusal]:
        refusals: list[Refusal] = []
        away: TryLater | None = None
        for request in batches(messages, self.max_entries, self.max_bytes):
            if away is None:
                try:
                    refusals += self._isolated(request)
                    continue
                except TryLater as error:
                    away = error
            refusals += [Refusal(message, away) for message in request]
        return refusals

    def _isolated(self, messages: list[Message]) -> list[Refusal]:
        """A request that is refused as a whole is sent in halves, down to the message at fault."""
        try:
            return self.send_request(messages)
        except SinkRefused as error:
            if len(messages) == 1:
                return [Refusal(messages[0], error)]
        middle = len(messages) // 2
        return self._isolated(messages[:middle]) + self._isolated(messages[middle:])


def is_refusal(code: str) -> bool:
    return code.rpartition(".")[2].removesuffix("Exception") in REFUSALS


@contextmanager
def aws_errors(what: str) -> Iterator[None]:
    """Botocore's errors in our own words."""
    from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

    try:
        yield
    except ParamValidationError as error:
        raise SinkRefused(f"{what}: {error}") from error
    except BotoCoreError as error:
        raise TryLater(f"{what} does not answer: {error}") from error
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if is_refusal(code):
            raise SinkRefused(f"{what}: {error}") from error
        raise TryLater(
            f"{what}: {error}", hint="look at its name, the region and the permissions"
        ) from error


def _made(service: str, region: str | None, endpoint: str | None) -> Any:
    import botocore.session
    from botocore.config import Config

    config = Config(
        retries={"mode": "standard", "max_attempts": _RETRIES}, connect_timeout=5, read_timeout=20
    )
    return botocore.session.get_session().create_client(
        service, region_name=region, endpoint_url=endpoint, config=config
    )
