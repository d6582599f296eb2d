"""S3, as bulk jobs use it: listing, reading and writing objects, with errors that say what to look at.

AWS_ENDPOINT_URL_S3 points it at anything else that speaks its protocol.
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
        raise ConfigurationError(f"{url!r} names no bucket", hint="as in s3://bucket/prefix")
    return parts.netloc, parts.path.lstrip("/")


def s3_client() -> Any:
    """As boto3 would make it."""
    import botocore.session

    return botocore.session.get_session().create_client("s3")


@contextmanager
def s3_trouble(url: str) -> Iterator[None]:
    """What S3 refuses, in our own words."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise BulkError(
            f"{url}: {error}",
            hint="look at the bucket, the region, the credentials and the permissions",
        ) from None


def s3_body(url: str) -> Any:
    """The content of an object, as a stream."""
    bucket, key = s3_place(url)
    with s3_trouble(url):
        return s3_client().get_object(Bucket=bucket, Key=key)["Body"]


def s3_keys(url: str) -> list[dict[str, Any]]:
    """What ListObjectsV2 says of everything that begins so."""
    bucket, prefix = s3_place(url)
    with s3_trouble(url):
        pages = s3_client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [
            each
            for page in pages
            for each in page.get("Contents", ())
            if not each["Key"].endswith("/")
        ]


def s3_listed(url: str) -> list[tuple[str, int, str]]:
    """Name, size and ETag of the object, or of all objects below the prefix, or of those a glob in the key matches."""
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
            f"there is nothing at {url}", hint="look at the bucket and the key"
        )
    return [
        (f"s3://{bucket}/{each['Key']}", each["Size"], each["ETag"].strip('"')) for each in found
    ]
