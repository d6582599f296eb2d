"""Tests of ``stator.design.lint``. Every rule is tested through its page in docs/lint.

catalogue: test_lint.py
check: test_lint.py
facts: test_lint.py
finding: test_lint.py
indexes: test_lint.py
items: test_lint.py
location: test_lint.py
partition_keys: test_lint.py
reads: test_lint.py
storage: test_lint.py
refused_patterns: test_lint.py
writes: test_lint.py
"""
