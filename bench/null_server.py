"""A DynamoDB that does nothing: it answers every request at once with a prepared response.

    python -m bench.null_server PORT

What remains is the client's own cost.
"""

from __future__ import annotations

import asyncio
import json
import sys
import zlib
from typing import Any

ITEM: dict[str, Any] = {
    "pk": {"S": "ITEM#1"},
    "PK": {"S": "CUSTOMER#1"},
    "item_id": {"S": "1"},
    "customer": {"S": "customer-42"},
    "placed_at": {"S": "2026-11-16T10:00:00.000000Z"},
    "status": {"S": "shipped"},
    "total": {"N": "129.95"},
    "quantity": {"N": "3"},
    "paid": {"BOOL": True},
    "note": {"S": "x" * 640},
    "tags": {"SS": ["gift", "priority"]},
    "lines": {"L": [{"S": "sku-1"}, {"S": "sku-2"}, {"S": "sku-3"}]},
}
TABLE = {
    "Table": {
        "TableName": "bench",
        "TableStatus": "ACTIVE",
        "ItemCount": 0,
        "TableSizeBytes": 0,
        "CreationDateTime": 1.7e9,
        "TableArn": "arn:aws:dynamodb:us-east-1:123456789012:table/bench",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    }
}
ANSWERS: dict[bytes, dict[str, Any]] = {
    b"GetItem": {"Item": ITEM},
    b"BatchWriteItem": {"UnprocessedItems": {}},
    b"DescribeTable": TABLE,
}


def _reply(answer: dict[str, Any]) -> bytes:
    body = json.dumps(answer, separators=(",", ":")).encode()
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nx-amzn-RequestId: NULL\r\n"
        f"x-amz-crc32: {zlib.crc32(body)}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


REPLIES = {operation: _reply(answer) for operation, answer in ANSWERS.items()}
OTHER = _reply({})


class Null(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.data = b""
        self.left = 0
        self.reply = OTHER

    def data_received(self, data: bytes) -> None:
        """Counts the bytes of bodies and looks at nothing but the target and the length."""
        while data:
            if self.left:
                taken = min(self.left, len(data))
                self.left -= taken
                data = data[taken:]
                if not self.left:
                    self.transport.write(self.reply)
                continue
            self.data += data
            head, found, data = self.data.partition(b"\r\n\r\n")
            if not found:
                return
            self.data = b""
            lower = head.lower()
            at = lower.find(b"x-amz-target:")
            target = (
                head[at : head.find(b"\r\n", at) if head.find(b"\r\n", at) > 0 else None]
                .rpartition(b".")[2]
                .strip()
            )
            self.reply = REPLIES.get(target, OTHER)
            at = lower.find(b"content-length:")
            self.left = int(lower[at + 15 :].split(b"\r\n", 1)[0])
            if not self.left:
                self.transport.write(self.reply)


async def main(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Null, "127.0.0.1", port)
    print("listening", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(int(sys.argv[1])))
