"""The heat model. ``test_acceptance.py`` has the cases that AWS's documentation decides, and
``test_properties.py`` what holds for every workload.

bucket: test_acceptance.py
limits: test_acceptance.py
partition: test_acceptance.py
resource: test_acceptance.py
sample: test_properties.py
splits: test_acceptance.py
throttle_cause: test_acceptance.py
"""
