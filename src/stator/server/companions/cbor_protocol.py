"""Smithy's RPC protocol in CBOR: what the SDKs for JavaScript, Java, Go and Rust send today."""

from __future__ import annotations

from typing import Any

from stator.errors import CompanionRefused
from stator.model.companion_service import CompanionService
from stator.model.service import ServiceModel
from stator.server.companions.cbor import EpochSeconds, decode, encode
from stator.server.companions.wire_protocol import WireError, model_of


class CborProtocol:
    def read(self, service: CompanionService, operation: str, body: bytes) -> Any:
        if not body:
            return {}
        try:
            return decode(body)
        except ValueError as error:
            raise CompanionRefused(
                "SerializationException", f"The body is wrong: {error}."
            ) from None

    def write(self, service: CompanionService, operation: str, answer: dict[str, Any]) -> bytes:
        model = model_of(service)
        output = model.operations[operation].get("output")
        return encode({} if output is None else _with_times(model, output["shape"], answer))

    def refuse(self, service: CompanionService, error: WireError) -> bytes:
        return encode({"__type": error.code, "message": error.message, **error.facts})

    def content_type(self, requested: bytes) -> bytes:
        return b"application/cbor"


def _with_times(model: ServiceModel, name: str, value: Any) -> Any:
    """Return an answer in which the times are marked, since CBOR has a tag for them."""
    shape = model.shapes[name]
    kind = shape["type"]
    if kind == "structure":
        return {
            member: _with_times(model, shape["members"][member]["shape"], each)
            for member, each in value.items()
            if each is not None
        }
    if kind == "list":
        return [_with_times(model, shape["member"]["shape"], each) for each in value]
    if kind == "map":
        inner = shape["value"]["shape"]
        return {key: _with_times(model, inner, each) for key, each in value.items()}
    return EpochSeconds(value) if kind == "timestamp" else value
