"""The blueprint: the search's layout written out as tables, keys, requests and reasons.

Everything here turns chosen placements into parts of a ``Plan``. Nothing here chooses: that is done
in ``stator.design.planner.search``.
"""
