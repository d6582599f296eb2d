"""Entities: dataclasses with roles, field references, conditions, and a codec to DynamoDB JSON.

``entity`` has the base class, ``markers`` has the roles of fields, ``shapes`` the types,
``conditions`` the comparisons, and ``codec`` the generated functions. ``adapters`` supports
pydantic and msgspec models. Keys are not part of an entity: the planner chooses them
(``stator.design.planner``), and ``stator.design.plan`` writes them.
"""
