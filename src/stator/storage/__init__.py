"""Ordered key-value storage for the embedded engine's data.

``protocol`` is the interface, ``memory`` and ``rocks`` (RocksDB, on disk) are its two
implementations. ``folder`` opens a folder and refuses one that lost writes, which ``high_water``
proves. ``failures`` translates RocksDB's exceptions. Nothing here knows DynamoDB: the engine
decides what keys and values mean (``stator.engine.items``).
"""

from stator.storage.memory import MemoryStorage
from stator.storage.protocol import Changes, Storage

__all__ = ["Changes", "MemoryStorage", "Storage"]
