"""The schemas of a Confluent schema registry, by their ids, and the header that names an id.

    0  byte 0: the magic byte, always 0
    1  bytes 1 to 4: the schema's id, big-endian
    5  the value

Schemas never change, so each is fetched once. If the registry does not answer, no record is at
fault: the error ends the ingest, and nothing is committed.
https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html
"""

from __future__ import annotations

import base64
import json
import struct
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from stator.errors import ConfigurationError, RegistryUnavailable, RowRefused

_MAGIC: Final = 0
_HEADER: Final = struct.Struct(">bI")
_ATTEMPTS: Final = 3
_PAUSE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema: its text, its kind (``AVRO``, ``JSON`` or ``PROTOBUF``), and what it refers to."""

    text: str
    kind: str
    references: tuple[RegisteredSchema, ...] = ()


def split_header(value: bytes) -> tuple[int, bytes]:
    """Return the schema id and the value behind the header. Raises RowRefused without a header."""
    if len(value) < _HEADER.size or value[0] != _MAGIC:
        raise RowRefused(
            "the value does not begin with the header of a schema registry: byte 0, and a schema id"
        )
    _, number = _HEADER.unpack_from(value)
    return int(number), value[_HEADER.size :]


class SchemaRegistry:
    """A client of a Confluent schema registry: ``SchemaRegistry("http://registry:8081")``.

    ``user`` and ``password`` are for basic authentication. Other registries with the same API, such
    as Redpanda's, Apicurio's and Karapace, work too.
    """

    def __init__(
        self,
        url: str,
        *,
        user: str | None = None,
        password: str | None = None,
        timeout_seconds: float = 5.0,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigurationError(
                f"{url!r} is not the URL of a schema registry", hint="write http://host:8081"
            )
        self.url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if user is not None:
            token = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"
        self._schemas: dict[int, RegisteredSchema] = {}
        self._lock = threading.Lock()

    def schema(self, number: int) -> RegisteredSchema:
        """Return the schema with an id.

        Raises RowRefused if there is none, and RegistryUnavailable if the registry does not answer.
        """
        found = self._schemas.get(number)
        if found is None:
            with self._lock:
                found = self._schemas.get(number) or self._read(f"/schemas/ids/{number}")
                self._schemas[number] = found
        return found

    def _read(self, path: str) -> RegisteredSchema:
        data = self._get(path)
        references = tuple(
            self._read(f"/subjects/{quote(each['subject'], safe='')}/versions/{each['version']}")
            for each in data.get("references") or ()
        )
        return RegisteredSchema(data["schema"], data.get("schemaType", "AVRO"), references)

    def _get(self, path: str) -> dict[str, Any]:
        request = urllib.request.Request(self.url + path, headers=self._headers)  # noqa: S310
        trouble = "no answer"
        for attempt in range(_ATTEMPTS):
            try:
                with urllib.request.urlopen(request, timeout=self._timeout_seconds) as reply:  # noqa: S310
                    found: dict[str, Any] = json.loads(reply.read())
                    return found
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    raise RowRefused(f"the schema registry has no {path}") from None
                trouble = f"{error.code} {error.reason}"
                if error.code in (401, 403):
                    break
            except (OSError, ValueError) as error:
                trouble = str(getattr(error, "reason", error))
            if attempt + 1 < _ATTEMPTS:
                time.sleep(_PAUSE_SECONDS)
        raise RegistryUnavailable(
            f"the schema registry at {self.url} does not answer: {trouble}",
            hint="check its URL, user and password; nothing was committed",
        )
