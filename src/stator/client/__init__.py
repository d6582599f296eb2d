"""The HTTP client for any DynamoDB endpoint: AWS, the embedded server, DynamoDB Local.

``factory`` opens a client from an address and options. ``sync_client`` and ``async_client`` do the
I/O; ``exchange`` encodes, signs and decodes for both. ``connections`` holds their connection rules,
``retry`` decides whether to try again, and ``credentials`` gets credentials from botocore. The
embedded engine needs none of this: ``stator.addresses`` calls it in-process.
"""
