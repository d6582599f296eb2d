"""The outbox pattern: messages written in the transaction of the item they are about.

``outbox`` adds messages and relays them, ``items`` has their keys and statements, ``delivery``
calls the user's function. Running a relay from a stream is in ``pipeline.maintenance.outboxes``.
"""
