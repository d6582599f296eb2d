"""Designs: the entities and access patterns a user declares, and everything derived from them.

This package opens no connection and does not use the engine. The only files it touches are lock
files, price files, and the user's source files, whose lines ``lint`` shows.

From the bottom up: ``entities`` (dataclasses with roles and a codec), ``plan`` (the frozen result
and its lock file), ``patterns`` (declared reads and writes), ``declaration`` (what the user writes,
as data), ``planner`` (the search for keys and indexes), ``cost`` (the monthly bill), then ``lint``,
``documents``, ``export`` and ``infer``, and ``design.Design``, the façade over all of them. Reading
and writing items is the job of ``stator.tables``.
"""
