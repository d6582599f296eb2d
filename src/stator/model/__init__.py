"""DynamoDB's data model, without I/O: values, numbers, limits, scopes and the service model.

Everything here is pure and imports only ``stator.errors``. Expressions over values are in
``stator.expr``, stored records in ``stator.engine.items``, file formats in ``stator.formats``.
"""
