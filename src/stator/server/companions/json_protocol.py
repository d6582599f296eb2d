"""AWS's JSON protocols 1.0 and 1.1: what boto3 and the AWS CLI send today."""

from __future__ import annotations

from typing import Any

import orjson

from stator.errors import CompanionRefused
from stator.model.companion_service import CompanionService
from stator.server.companions.wire_protocol import WireError


class JsonProtocol:
    """Times are epoch seconds in both directions, so answers need no conversion."""

    def read(self, service: CompanionService, operation: str, body: bytes) -> Any:
        try:
            return orjson.loads(body or b"{}")
        except orjson.JSONDecodeError:
            raise CompanionRefused("SerializationException", "The body is not JSON.") from None

    def write(self, service: CompanionService, operation: str, answer: dict[str, Any]) -> bytes:
        return orjson.dumps(answer)

    def refuse(self, service: CompanionService, error: WireError) -> bytes:
        return orjson.dumps({"__type": error.code, "message": error.message, **error.facts})

    def content_type(self, requested: bytes) -> bytes:
        return requested
