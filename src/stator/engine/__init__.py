"""DynamoDB itself: every operation, on ordered storage, in process.

``Engine`` composes the parts and answers requests. ``operations`` holds the operations, and
``requests`` the checks that need no table. ``tables`` describes tables, and ``items`` reads and
writes what is in them. ``partiql``, ``streams`` and ``recovery`` are the larger features. Modules
at this level are shared by all of them: the database, the key space, the lifecycle of tables,
expiry.

Bytes on disk are ``stator.storage``'s business, the expression language is ``stator.expr``'s, and
HTTP is ``stator.server``'s. The engine imports nothing from the framework above it.
"""

from stator.engine.engine import Engine, Reply

__all__ = ["Engine", "Reply"]
