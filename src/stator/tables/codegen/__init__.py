"""Generated writers, one set per entity and plan: key attributes, and whole items as JSON bytes.

The codec, which encodes and decodes the fields of an entity whatever its keys, is generated in
``stator.design.entities``.
"""
