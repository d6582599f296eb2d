"""Tests of ``stator.design.export``.

boto3_script: test_tables.py
cdk: test_tables.py
cloudformation: test_tables.py
iam: test_iam.py
index_steps: test_tables.py
nosql_workbench: test_tables.py
source: test_tables.py
terraform: test_tables.py
"""
