"""Tests of ``stator.storage``. Where the tests of each module are:

high_water: test_folder.py
failures: test_storage.py
memory: test_storage.py
protocol: test_storage.py
rocks: test_storage.py
"""
