"""The one expression language of DynamoDB: conditions, updates, projections and key conditions.

``parse_*`` turns text into a tree once per text (cached); ``bind`` puts a request's names and values into it;
``evaluate``, ``apply`` and ``project`` run the bound tree on an item. The legacy parameters and PartiQL build
the same tree, so there is one evaluator.
"""
