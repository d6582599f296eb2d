from __future__ import annotations

import pytest

from tests.patterns.crashing import Form
from tests.targets import servers, target

__all__ = ["form", "servers", "target"]


@pytest.fixture(params=["sync", "async"])
def form(request: pytest.FixtureRequest) -> Form:
    """Whether a crashing process uses a ``Db`` or an ``AsyncDb``."""
    found: Form = request.param
    return found
