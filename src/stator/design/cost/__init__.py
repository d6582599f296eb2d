"""Cost: the monthly bill of a plan, and the difference between two bills.

``workload`` counts units and bytes, ``prices`` has AWS's prices by region, ``charges`` multiplies,
``report`` lists the lines, ``difference`` and ``origin`` compare two reports. How DynamoDB counts
units is in ``stator.design.capacity_units``; the few prices that rank layouts are in
``stator.design.unit_prices``.
"""
