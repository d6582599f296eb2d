"""Generated functions that write an entity's key attributes, and whole items as JSON bytes.

The codec, which encodes and decodes an entity's fields and does not depend on its keys, is
generated in ``stator.design.entities``.
"""
