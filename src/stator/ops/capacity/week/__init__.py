"""The week's profile: which days are alike, which levels they need, and the schedule of it.

What a user writes as a schedule is a ``CapacityWindow`` of ``stator.model.scaling``.
"""
