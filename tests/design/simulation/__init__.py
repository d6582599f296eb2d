"""Tests of ``stator.design.simulation``. Where a module's tests are, if not in a file of its name:

admission: test_agreement.py
call_shapes: test_simulator.py
flows: test_simulator.py
key_sets: test_simulator.py
measured_traffic: test_measured_traffic.py
run: test_simulator.py
simulation: test_simulator.py
value_groups: test_simulator.py

``test_agreement.py`` compares simulations with runs that send one request at a time.
"""
