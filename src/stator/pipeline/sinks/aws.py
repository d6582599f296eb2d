"""What the sinks into AWS's services share: a client of botocore's, and what its errors say of a change.

A request that cannot be right (too long, not allowed characters) is the fault of a change. Everything else is waited for: throttling and failures, and also a queue
that is not there or a permission that is missing, for which no change is to be parked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from stator.errors import SinkRefused, TryLater
from stator.pipeline.sinks.sink import Made, Message, batches
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
    service: str

    def connect(self, region: str | None, endpoint: str | None, client: Any) -> None:
        """``client`` is one of botocore's or boto3's; without, it is made as boto3 would make it."""
        self._client = Made[Any](lambda: client or _made(self.service, region, endpoint))
        self._is_own = client is None

    @property
    def client(self) -> Any:
        return self._client.get()

    def close(self) -> None:
        made = self._client.take() if self._is_own else None
        if made is not None:
            made.close()

    def requests(self, messages: Sequence[Message]) -> Iterator[list[Message]]:
        """The requests of a wave, which is no larger than one in bytes but may have more messages."""
        return batches(messages, self.max_entries, self.max_bytes)

    max_entries: int = 10


def is_refusal(code: str) -> bool:
    return code.rpartition(".")[2].removesuffix("Exception") in REFUSALS


@contextmanager
def told(what: str) -> Iterator[None]:
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
        raise TryLater(f"{what}: {error}", hint="look at its name, the region and the permissions") from error


def _made(service: str, region: str | None, endpoint: str | None) -> Any:
    import botocore.session
    from botocore.config import Config

    config = Config(retries={"mode": "standard", "max_attempts": _RETRIES}, connect_timeout=5, read_timeout=20)
    return botocore.session.get_session().create_client(
        service, region_name=region, endpoint_url=endpoint, config=config
    )
