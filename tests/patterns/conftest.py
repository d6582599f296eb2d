from __future__ import annotations

import pytest

from tests.patterns.crashing import Form
from tests.targets import servers, target

__all__ = ["form", "servers", "target"]


@pytest.fixture(params=["sync", "async"])
def form(request: pytest.FixtureRequest) -> Form:
    """What a process that dies stands on: a ``Db`` or an ``AsyncDb``."""
    found: Form = request.param
    return found
