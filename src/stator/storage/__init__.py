"""Ordered bytes: a small protocol with two implementations, memory and RocksDB."""

from stator.storage.memory import MemoryStorage
from stator.storage.protocol import Changes, Storage

__all__ = ["Changes", "MemoryStorage", "Storage"]
