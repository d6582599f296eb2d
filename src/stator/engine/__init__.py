"""DynamoDB itself: every operation, on ordered storage, in process."""

from stator.engine.engine import Engine, Reply

__all__ = ["Engine", "Reply"]
