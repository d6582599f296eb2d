"""Checks that a request must pass before any table is looked up.

``shapes`` checks a request against DynamoDB's service model and refuses malformed ones with AWS's
texts. The other modules read parameters that several operations take. Checks that need a table's
schema are in ``engine.tables`` and ``engine.items``.
"""
