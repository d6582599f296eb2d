"""Tests of the companions' wire formats, against botocore's own clients.

gateway: test_cloudwatch_over_http.py
cbor: test_cbor.py
cbor_protocol: test_cloudwatch_over_http.py
json_protocol: test_cloudwatch_over_http.py
query_protocol: test_cloudwatch_over_http.py
wire_protocol: test_cloudwatch_over_http.py
"""
