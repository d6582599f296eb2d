from __future__ import annotations

from tests.targets import servers, target

__all__ = ["servers", "target"]
