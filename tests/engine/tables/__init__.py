"""The control plane: operations on tables and the rules about their declarations.

account_quotas: test_create_table.py
index_checks: test_create_table.py
declared_keys: test_create_table.py
item_keys: ../facts/test_limits.py
key_schema: ../facts/test_limits.py
settings: test_update_table.py
table: test_catalog.py
tag_checks: test_tags.py
throughput: test_update_table.py
"""
