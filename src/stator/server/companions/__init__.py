"""The wire formats of companion services, such as CloudWatch, on the server's port.

``gateway`` recognises their requests and answers them. Three protocols carry the same operations:
JSON, the query protocol of older SDKs (forms and XML), and Smithy's CBOR. The in-process boto3 of
``stator.testing`` uses the same gateway.
"""
