"""Calls of AWS services through botocore clients, with errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stator.errors import LiveTableUnreachable

Reply = dict[str, Any]
_NAMES: Final = {
    "dynamodb": "DynamoDB",
    "cloudwatch": "CloudWatch",
    "application-autoscaling": "Application Auto Scaling",
}
_UNKNOWN: Final = ("UnknownOperationException", "InvalidAction", "404", "MissingAction")


def call(client: Any, operation: str, **parameters: Any) -> Reply:
    """Call an operation by its Python name. Every failure raises LiveTableUnreachable."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        reply: Reply = getattr(client, operation)(**parameters)
    except (BotoCoreError, ClientError) as error:
        raise unreachable(client, operation, error) from None
    return reply


def pages(client: Any, operation: str, **parameters: Any) -> Iterator[Reply]:
    """Call an operation that returns its result in pages, each with a NextToken."""
    token: str | None = None
    while True:
        reply = call(client, operation, **parameters, **({"NextToken": token} if token else {}))
        yield reply
        token = reply.get("NextToken")
        if not token:
            return


def unreachable(client: Any, operation: str, error: Exception) -> LiveTableUnreachable:
    service = client.meta.service_model.service_name
    name = _NAMES.get(service, service)
    where = f"{name} at {client.meta.endpoint_url}"
    code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
    if code in _UNKNOWN:
        instead = ", or a file: --history FILE" if service == "cloudwatch" else ""
        return LiveTableUnreachable(
            f"{where} does not know {operation}",
            hint=f"use an address that answers {name}{instead}",
        )
    if "EndpointConnection" in type(error).__name__:
        hint = "check the address, or start an engine there: `stator serve` listens on port 8000"
    elif "Credentials" in type(error).__name__:
        hint = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    elif code == "LimitExceededException":
        hint = "AWS allows this only so often: try again at the time that the message names"
    else:
        hint = "check the address, the region and the permissions"
    return LiveTableUnreachable(f"{where}, {operation}: {error}", hint=hint)
