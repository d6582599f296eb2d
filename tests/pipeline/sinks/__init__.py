"""Tests of ``stator.pipeline.sinks``. Where a module is tested, if not by a file of its name:

audit_chain: test_audit.py
change_sink: test_sink.py
events: test_webhook.py
kinesis: test_aws.py
parquet_merge: test_parquet.py
sqs_sns: test_aws.py
waves: test_sink.py
"""
