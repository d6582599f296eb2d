"""The embedded DynamoDB: every operation, on ordered storage, in-process.

``Engine`` composes the parts and answers requests. ``operations`` holds the operations, and
``requests`` the checks that need no table. ``tables`` holds the definitions of tables, and
``items`` reads and writes their items. ``partiql``, ``streams`` and ``recovery`` are the larger
features. Modules at this level are shared by all of them: the database, the key space, the
lifecycle of tables, expiry.

Storage on disk is in ``stator.storage``, the expression language in ``stator.expr``, and HTTP in
``stator.server``. The engine imports nothing from the framework above it.
"""

from stator.engine.engine import Engine, Reply

__all__ = ["Engine", "Reply"]
