"""Designs: the entities and access patterns a user declares, and everything derived from them.

This package does no I/O and does not use the engine.

From the bottom up: ``entities`` (dataclasses with roles and a codec), ``plan`` (the frozen result
and its lock file), ``patterns`` (declared reads and writes), ``declaration`` (what the user writes,
as data), ``planner`` (the search for keys and indexes), ``cost`` (the monthly bill), then ``lint``,
``documents``, ``export`` and ``infer``, and ``design.Design``, the façade over all of them. Reading
and writing items is the job of ``stator.tables``.
"""
