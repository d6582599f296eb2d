"""boto3 without a socket: requests go from botocore's serializer straight into an engine.

Every part of botocore except the connection is used (validation, serialization, signing, retries,
parsing), so code under test behaves as it does against AWS.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import TYPE_CHECKING, Any

from stator.engine import Engine
from stator.errors import ConfigurationError
from stator.model.scope import DEFAULT_ACCOUNT, DEFAULT_REGION, Scope

if TYPE_CHECKING:
    import boto3

_BODY_BYTES = 16 * 1024 * 1024


def boto3_session(
    engine: Engine, *, region_name: str = DEFAULT_REGION, account: str = DEFAULT_ACCOUNT
) -> boto3.Session:
    """Return a boto3 session whose DynamoDB clients and resources use ``engine``.

    This includes clients for DynamoDB Streams.
    """
    try:
        import boto3
    except ImportError:
        raise ConfigurationError(
            "boto3 is not installed", hint="pip install 'stator[boto3]'"
        ) from None
    from botocore.session import get_session

    core = get_session()
    core.register_component("data_loader", shared_loader(core.get_config_variable("data_path")))
    session = boto3.Session(
        botocore_session=core,
        aws_access_key_id="stator",
        aws_secret_access_key="stator",  # noqa: S106 - any will do: nothing checks it
        region_name=region_name,
    )
    wire(session, engine, account=account)
    return session


def shared_loader(data_path: str | None) -> Any:
    """Return the loader of botocore's service models that sessions share.

    Parsing the models and the list of endpoints takes ten times as long as everything else that a
    session and a client do at their start.
    """
    loader = _loader(data_path)
    # Each session of boto3 adds the folder of its resources once more.
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)
    return loader


@cache
def _loader(data_path: str | None) -> Any:
    from botocore.loaders import create_loader

    return create_loader(data_path)


def boto3_client(
    engine: Engine, *, region_name: str = DEFAULT_REGION, account: str = DEFAULT_ACCOUNT
) -> Any:
    """Return a boto3 DynamoDB client that uses ``engine``."""
    return boto3_session(engine, region_name=region_name, account=account).client("dynamodb")


def boto3_resource(
    engine: Engine, *, region_name: str = DEFAULT_REGION, account: str = DEFAULT_ACCOUNT
) -> Any:
    """Return a boto3 DynamoDB resource that uses ``engine``."""
    return boto3_session(engine, region_name=region_name, account=account).resource("dynamodb")


def wire(session: boto3.Session, engine: Engine, *, account: str = DEFAULT_ACCOUNT) -> None:
    """Make every DynamoDB client that a session creates from now on use ``engine``.

    So do its clients of the companion services, such as CloudWatch. Clients that the session has
    already created stay as they are.
    """
    from botocore.awsrequest import AWSResponse

    from stator.server.companions.gateway import CompanionGateway
    from stator.server.http.request import HttpRequest

    def answer(request: Any, **_: Any) -> AWSResponse:
        target = request.headers.get("X-Amz-Target", "")
        if isinstance(target, bytes):
            target = target.decode()
        operation = target.partition(".")[2]
        body = request.body or b""
        if isinstance(body, str):
            body = body.encode()
        reply = engine.submit(operation, body, Scope(account, _region(request, session)))
        if reply.commit is not None:
            engine.storage.wait_durable(reply.commit)
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "x-amzn-RequestId": "STATOR",
            "x-amz-crc32": str(zlib.crc32(reply.body)),
        }
        return AWSResponse(request.url, reply.status, headers, _Raw(reply.body))

    def answer_companion(request: Any, **_: Any) -> AWSResponse | None:
        scope = Scope(account, _region(request, session))
        gateway = CompanionGateway(engine, lambda *_: scope, _BODY_BYTES)
        path = "/" + request.url.split("://", 1)[1].partition("/")[2]
        headers = {name.lower().encode(): _bytes(value) for name, value in request.headers.items()}
        outcome = gateway.answer(
            HttpRequest(request.method.encode(), path.encode(), headers, _bytes(request.body), True)
        )
        if outcome is None:  # another service, which is none of the engine's
            return None
        lines = outcome.extra.decode().split("\r\n")
        answered = dict(line.split(": ", 1) for line in lines if line)
        answered["Content-Type"] = outcome.content_type.decode()
        return AWSResponse(request.url, outcome.status, answered, _Raw(outcome.body))

    session.events.register("before-send", answer_companion)
    for service in ("dynamodb", "dynamodb-streams"):
        session.events.register(f"before-send.{service}.*", answer)


def _region(request: Any, session: boto3.Session) -> str:
    """Return the region the request was signed for, or the session's if it is not signed."""
    authorization = request.headers.get("Authorization", "")
    if isinstance(authorization, bytes):
        authorization = authorization.decode()
    _, _, credential = authorization.partition("Credential=")
    parts = credential.split(",", 1)[0].split("/")
    return parts[2] if len(parts) == 5 else session.region_name or DEFAULT_REGION


def _bytes(content: Any) -> bytes:
    if content is None:
        return b""
    return content.encode() if isinstance(content, str) else bytes(content)


class _Raw:
    """The part of urllib3's response that botocore reads."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, *_: Any, **__: Any) -> Any:
        yield self._content

    def read(self, *_: Any, **__: Any) -> bytes:
        content, self._content = self._content, b""
        return content
