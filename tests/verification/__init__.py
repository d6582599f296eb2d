"""Tests of ``stator.verification``. ``designs`` has designs of six kinds of systems.

call_arguments: test_verifier.py
condition_evaluator: test_verifier.py
key_collections: test_verifier.py
measurement: test_verifier.py
metered_engine: test_verifier.py
read_measurement: test_verifier.py
sample_parts: ../design/test_derived_parts.py
sample_values: test_item_generator.py
unit_boundaries: test_verifier.py
write_measurement: test_verifier.py
"""
