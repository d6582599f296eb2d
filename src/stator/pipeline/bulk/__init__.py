"""Bulk: files into a table (``load``), a table into files (``export``), a table into another (``copy``).

All three go through DynamoDB's API alone, so they run on the embedded engine, on any endpoint and on AWS alike.
"""
