"""The ingest that the tests of processes run: counters in ``Total``, last values in ``Reading``."""

from __future__ import annotations

import os

from stator.pipeline import Ingest

from .meters import Reading, Total, add_to_total, meters

TOPIC = os.environ.get("TOPIC", "readings")

app = Ingest(meters, f"count-{TOPIC}")
app.put(Reading, topic=TOPIC)
app.fold(Total, topic=TOPIC, by=lambda event: {"meter": event["meter"]})(add_to_total)
