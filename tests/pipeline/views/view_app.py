"""An app for the tests that run ``stator work`` and ``stator views``."""

from __future__ import annotations

from stator.pipeline import Projection, StreamApp
from tests.pipeline.views.fleet import Test, fleet, make_hours

app = StreamApp(fleet, "summaries")
hours = make_hours()
by_isp = Projection("by_isp", of=Test, key=Test.isp, sort=Test.at, fields=[Test.test_id])
app.add(hours)
app.add(by_isp)
