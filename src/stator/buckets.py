"""S3, or a server with the same protocol, as the object store of exports and imports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import urlsplit

from stator.engine.recovery.objects import Encryption, ObjectStoreError
from stator.errors import ConfigurationError
from stator.model.scope import DEFAULT_REGION

if TYPE_CHECKING:
    from stator.engine.recovery.objects import ObjectStore

_CODES = {
    "NoSuchBucket": "S3NoSuchBucket",
    "NoSuchKey": "S3NoSuchKey",
    "404": "S3NoSuchBucket",
    "AccessDenied": "S3AccessDenied",
    "403": "S3AccessDenied",
}
_ALGORITHMS = {"AES256": "AES256", "KMS": "aws:kms"}


class S3Buckets:
    """An object store on S3.

    ``client`` is a botocore or boto3 S3 client. By default, one is created for ``endpoint``, with
    the region and credentials that boto3 finds.
    """

    def __init__(self, *, endpoint: str | None = None, client: Any = None) -> None:
        self._client = client or _make_client(endpoint)

    def put(
        self,
        bucket: str,
        key: str,
        content: bytes,
        *,
        owner: str | None = None,
        encryption: Encryption | None = None,
    ) -> str:
        request: dict[str, Any] = {"Bucket": bucket, "Key": key, "Body": content, **_owned(owner)}
        if encryption is not None and encryption.algorithm is not None:
            request["ServerSideEncryption"] = _ALGORITHMS[encryption.algorithm]
            if encryption.key is not None:
                request["SSEKMSKeyId"] = encryption.key
        with _as_object_store_errors():
            etag: str = self._client.put_object(**request)["ETag"]
        return etag.strip('"')

    def open(self, bucket: str, key: str, *, owner: str | None = None) -> BinaryIO:
        with _as_object_store_errors():
            body = self._client.get_object(Bucket=bucket, Key=key, **_owned(owner))["Body"]
        return cast("BinaryIO", _Body(body))

    def keys(
        self, bucket: str, prefix: str, *, owner: str | None = None
    ) -> Iterator[tuple[str, int]]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, **_owned(owner)
        )
        with _as_object_store_errors():
            for page in pages:
                for each in page.get("Contents", ()):
                    yield each["Key"], each["Size"]


class _Body(RawIOBase):
    """The content of an object. Raises ObjectStoreError if the connection breaks."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _as_object_store_errors():
            data = self._body.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._body.close()
        super().close()


def _owned(owner: str | None) -> dict[str, str]:
    return {} if owner is None else {"ExpectedBucketOwner": owner}


@contextmanager
def _as_object_store_errors() -> Iterator[None]:
    """Turn errors from S3 inside the ``with`` block into ObjectStoreErrors.

    The codes of these errors are the codes that DynamoDB reports for an export or import.
    """
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        raise ObjectStoreError(_CODES.get(code, f"S3{code}"), str(error)) from error
    except NoCredentialsError as error:
        raise ObjectStoreError("S3AccessDenied", str(error)) from error
    except BotoCoreError as error:
        raise ObjectStoreError("S3InternalError", str(error)) from error


def _make_client(endpoint: str | None) -> Any:
    import botocore.session
    from botocore.config import Config

    if endpoint is not None and urlsplit(endpoint).scheme not in ("http", "https"):
        raise ConfigurationError(
            f"{endpoint!r} is not an S3 endpoint", hint="use a URL such as http://127.0.0.1:8333"
        )
    session = botocore.session.get_session()
    region = session.get_config_variable("region") or DEFAULT_REGION
    # Servers other than AWS have one host name for all buckets.
    style = "auto" if endpoint is None or "amazonaws.com" in endpoint else "path"
    return session.create_client(
        "s3",
        endpoint_url=endpoint,
        region_name=region,
        config=Config(s3={"addressing_style": style}),
    )


if TYPE_CHECKING:
    _checked: ObjectStore = S3Buckets()
