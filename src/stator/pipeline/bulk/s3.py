"""S3 as bulk jobs use it: listing, reading and writing objects.

The environment variable AWS_ENDPOINT_URL_S3 selects another server with the same protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from stator.errors import BulkError, ConfigurationError


def s3_place(url: str) -> tuple[str, str]:
    parts = urlsplit(url, allow_fragments=False)
    if not parts.netloc:
        raise ConfigurationError(f"{url!r} names no bucket", hint="write it as s3://bucket/prefix")
    return parts.netloc, parts.path.lstrip("/")


def s3_client() -> Any:
    """Return a client of S3. Region and credentials come from the same places as boto3's."""
    import botocore.session

    return botocore.session.get_session().create_client("s3")


@contextmanager
def s3_errors(url: str) -> Iterator[None]:
    """Turn errors of S3 within the ``with`` block into BulkError."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise BulkError(
            f"{url}: {error}",
            hint="check the bucket, the region, the credentials and the permissions",
        ) from None


def s3_body(url: str) -> Any:
    """Return the content of an object as a stream."""
    bucket, key = s3_place(url)
    with s3_errors(url):
        return s3_client().get_object(Bucket=bucket, Key=key)["Body"]


def s3_keys(url: str) -> list[dict[str, Any]]:
    """Return the entries of ListObjectsV2 for all objects whose URL begins with ``url``."""
    bucket, prefix = s3_place(url)
    with s3_errors(url):
        pages = s3_client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [
            each
            for page in pages
            for each in page.get("Contents", ())
            if not each["Key"].endswith("/")
        ]


def s3_listed(url: str) -> list[tuple[str, int, str]]:
    """Return name, size and ETag of the objects that a URL stands for.

    The URL may name an object, a prefix, or a pattern with ``*``, ``?`` or ``[``.
    """
    bucket, key = s3_place(url)
    fixed = key[: min((key.find(sign) for sign in "*?[" if sign in key), default=len(key))]
    found = s3_keys(f"s3://{bucket}/{fixed}")
    if fixed != key:
        found = [each for each in found if fnmatchcase(each["Key"], key)]
    elif any(each["Key"] == key for each in found):
        found = [each for each in found if each["Key"] == key]
    else:
        found = [each for each in found if each["Key"].startswith(key.rstrip("/") + "/") or not key]
    if not found:
        raise ConfigurationError(
            f"there is no object at {url}", hint="check the bucket and the key"
        )
    return [
        (f"s3://{bucket}/{each['Key']}", each["Size"], each["ETag"].strip('"')) for each in found
    ]
