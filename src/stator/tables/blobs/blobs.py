"""Large values: fields marked ``large()``, packed on writes and unpacked on reads.

A value under a kilobyte is stored unchanged. A larger one is compressed if that makes it smaller,
and stored as a map that says how:

    note  {"M": {"stator:packed": {"S": "zstd"}, "kind": {"S": "S"}, "size": {"N": "20480"},
                 "data": {"B": "..."}}}

A value still larger than the field's ``offload_over_bytes`` goes to the blob store. The map then
holds the name and the hash of the blob instead of data:

    note  {"M": {"stator:packed": {"S": "zstd"}, "kind": ..., "size": ...,
                 "at": {"S": "shop/Order/5a.../note/9f...-3c"}, "sha256": {"S": "9f..."}}}

The blob is written before the item, under a name no other write ever uses. An old blob is deleted
only once no item names it any more. So an item always names a blob that exists; a crash or a failed
write leaves at worst a blob that no item names, which ``BlobAudit`` finds. ``keep_blobs=True`` on a
delete moves the item's blobs aside, under ``kept/``.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterable
from functools import partial

import orjson

from stator.design.entities.markers import Marker
from stator.errors import BlobDamaged, ConfigurationError
from stator.model.values import Item, Value
from stator.tables.blobs.compression import compress, decompress
from stator.tables.blobs.stores import BlobStore
from stator.tables.schema.entity_map import EntityMap
from stator.tables.work import BlockingCall, Gather, Work, gathered

SMALL_BYTES = 1024
MARK = "stator:packed"


def packed(of: EntityMap, item: Item, store: BlobStore | None, nonce: str) -> Work[Item]:
    """Pack the large values of an item in place, and return the item.

    Offloaded values are written to the blob store before this function returns. ``nonce`` is text
    that makes the names of their blobs unique to this write.
    """
    uploads: list[tuple[str, bytes]] = []
    for name, marker in of.large.items():
        value = item.get(name)
        if value is not None and MARK not in value.get("M", {}):
            item[name] = _packed_value(of, name, marker, value, item, store, nonce, uploads)
    if uploads:
        assert store is not None
        gathered((yield Gather([_upload(store, key, content) for key, content in uploads])))
    return item


def _upload(store: BlobStore, key: str, content: bytes) -> Work[None]:
    yield BlockingCall(partial(store.put, key, content))


def _packed_value(
    of: EntityMap,
    name: str,
    marker: Marker,
    value: Value,
    item: Item,
    store: BlobStore | None,
    nonce: str,
    uploads: list[tuple[str, bytes]],
) -> Value:
    kind, content = _content(value)
    if len(content) < SMALL_BYTES:
        return value
    method, made = compress(content, marker.compress) if marker.compress else ("none", content)
    if len(made) >= len(content):
        method, made = "none", content
    limit = marker.offload_over_bytes
    told = {MARK: {"S": method}, "kind": {"S": kind}, "size": {"N": str(len(content))}}
    if limit is not None and len(made) > limit:
        if store is None:
            raise ConfigurationError(
                f"{of.name}.{name} has {len(made):,} bytes, more than its offload_over_bytes "
                f"({limit:,}), and there is no blob store",
                hint='connect with blobs="s3://bucket/prefix" or blobs="folder"',
            )
        digest = hashlib.sha256(made).hexdigest()
        owner = hashlib.sha256(
            orjson.dumps(of.stored_key(item), option=orjson.OPT_SORT_KEYS)
        ).hexdigest()[:32]
        key = f"{blob_prefix(of)}{owner}/{name}/{digest}-{nonce}"
        uploads.append((key, made))
        return {"M": told | {"at": {"S": key}, "sha256": {"S": digest}}}
    if method == "none":
        return value
    return {"M": told | {"data": {"B": b64encode(made).decode()}}}


def blob_prefix(of: EntityMap) -> str:
    """Return the text that the names of an entity's blobs start with, such as ``shop/Order/``.

    The text contains the table's name, so environments that share a store do not collide.
    """
    return f"{of.table.name}/{of.name}/"


def _content(value: Value) -> tuple[str, bytes]:
    """Return the kind of a value ("S", "B" or "JSON") and the bytes to compress.

    Text and binary values are unchanged; any other value becomes JSON.
    """
    [(kind, inner)] = value.items()
    if kind == "S":
        return "S", inner.encode()
    if kind == "B":
        return "B", b64decode(inner)
    return "JSON", orjson.dumps(value)


def unpacked(of: EntityMap, items: list[Item], store: BlobStore | None) -> Work[list[Item]]:
    """Return the items with their large values unpacked. Blobs are read in parallel."""
    keys = [key for item in items for key in blob_keys(of, item)]
    found: dict[str, bytes] = {}
    if keys:
        if store is None:
            raise ConfigurationError(
                f"items of {of.name} have values in a blob store, and this connection has none",
                hint='connect with blobs="s3://bucket/prefix" or blobs="folder"',
            )
        contents = gathered((yield Gather([_download(store, key) for key in keys])))
        found = dict(zip(keys, contents))
    return [plain(of, item, found) for item in items]


def _download(store: BlobStore, key: str) -> Work[bytes]:
    content: bytes = yield BlockingCall(partial(store.get, key))
    return content


def plain(of: EntityMap, item: Item, blobs: dict[str, bytes]) -> Item:
    """Return the item with its large values unpacked.

    ``blobs`` maps the names of offloaded values to their bytes.
    """
    changed = {
        name: _plain_value(item[name]["M"], blobs)
        for name in of.large
        if _is_packed(item.get(name))
    }
    return item | changed if changed else item


def _plain_value(told: Item, blobs: dict[str, bytes]) -> Value:
    if "at" in told:
        key = told["at"]["S"]
        made = blobs[key]
        if hashlib.sha256(made).hexdigest() != told["sha256"]["S"]:
            raise BlobDamaged(key)
    else:
        made = b64decode(told["data"]["B"])
    method = told[MARK]["S"]
    content = made if method == "none" else decompress(made, method)
    match told["kind"]["S"]:
        case "S":
            return {"S": content.decode()}
        case "B":
            return {"B": b64encode(content).decode()}
    value: Value = orjson.loads(content)
    return value


def _is_packed(value: Value | None) -> bool:
    return value is not None and MARK in value.get("M", {})


def blob_keys(of: EntityMap, item: Item | None) -> list[str]:
    """Return the names of an item's blobs."""
    if item is None:
        return []
    packed_values = [item[name]["M"] for name in of.large if _is_packed(item.get(name))]
    return [told["at"]["S"] for told in packed_values if "at" in told]


def kept(store: BlobStore | None, keys: Iterable[str]) -> Work[None]:
    """Move blobs to names under ``kept/``, where ``BlobAudit`` does not look."""
    for key in keys:
        assert store is not None
        content = yield BlockingCall(partial(store.get, key))
        yield BlockingCall(partial(store.put, f"kept/{key}", content))
        yield BlockingCall(partial(store.delete, [key]))


def removed(store: BlobStore | None, keys: Iterable[str]) -> Work[None]:
    """Delete blobs that no item names any more."""
    gone = list(keys)
    if gone and store is not None:
        yield BlockingCall(partial(store.delete, gone))
