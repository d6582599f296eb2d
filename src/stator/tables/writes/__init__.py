"""Writes, planned as statements and sent alone, as a transaction, or in batches.

``writes`` plans the statements of create, put, upsert, update, delete and check; ``sender`` sends
them and turns failed conditions into errors. ``recorder`` and ``open_update`` record updates,
``unique_guards`` guards unique values, ``transaction_tokens`` makes transactions idempotent.
``batches`` writes without conditions, ``guarded`` with a condition for each item. Both are for many
items in few requests.
"""
