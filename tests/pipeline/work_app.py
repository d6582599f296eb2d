"""An app for the tests of ``stator work``: writes a line for each change it handles."""

from __future__ import annotations

import os

from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.handlers.change import Change
from tests.pipeline.shop import Order, shop

app = StreamApp(shop, "audit")


@app.on.any(Order)
def note(change: Change[Order]) -> None:
    entity = change.new or change.old
    assert entity is not None
    if entity.status == "poison" and not os.path.exists(os.environ["CURED"]):
        raise ValueError("poison")
    line = f"{entity.order_id} {entity.total}\n".encode()
    with open(os.environ["NOTES"], "ab", buffering=0) as notes:
        notes.write(line)  # one write of one line: appended whole, whoever else appends
