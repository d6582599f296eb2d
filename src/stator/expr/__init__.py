"""DynamoDB's expression language: conditions, updates, projections and key conditions.

``parser`` turns text into a tree, once per text (cached). ``bind`` puts a request's names and
values into it, with AWS's checks. ``condition``, ``update`` and ``paths`` run the bound tree on an
item. The legacy parameters (``legacy``) and PartiQL (``stator.engine.partiql``) build the same
trees, so there is one evaluator. Items arrive as normalised attribute values
(``stator.model.values``). This package knows nothing about tables.
"""
