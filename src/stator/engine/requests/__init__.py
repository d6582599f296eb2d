"""Requests before any table is known: their shapes, and the parameters that operations share.

``shapes`` checks a request against DynamoDB's service model and answers malformed ones in AWS's
words. The other modules read parameters that several operations take. Checks that need a table's
schema are in ``engine.tables`` and ``engine.items``.
"""
