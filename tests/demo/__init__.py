"""Tests of ``stator.demo``. Where the tests of each module are:

acts: test_demo.py
app: test_demo.py
charts: test_demo.py
fleet: test_demo.py
history: test_demo.py
live: test_demo.py
page: test_demo.py
processes: test_demo.py
recount: test_demo.py
story: test_demo.py
terminal: test_demo.py
"""
