"""The values of records: from bytes to Python data and to objects of a class.

``decoders`` has JSON and the conversion to classes. ``registered_values`` has the formats with the
header of a schema registry, and ``schema_registry`` is its client.
"""
