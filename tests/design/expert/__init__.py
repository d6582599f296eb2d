"""Designs by an expert's hand, each with the keys that the expert would choose.

They were written without sight of the planner or its plans. Some are the expert's own, the others
follow publications (``SOURCE`` says which, and how sure the expert is of their keys); rates,
volumes and sizes are the expert's. The designs ``second_...`` are of another expert, who noted the
keys and the dollars before the planner ran, and then tried to prove it wrong. ``EXPECTED`` has the
answers, ``WHY`` the judgements:

| Entry | Meaning |
|---|---|
| ``entities`` | the base key: fields of the partition, and of the sort key in order |
| ``patterns`` | ``by``: base, index, guard, legs (several requests), filter; and the index's key |
| ``or`` | other answers that are right as well |
| ``projection`` | where it matters: the preferred kind; ``projection_or`` has others |
| ``shards`` | the least and the most number of shards; without it, there must be none |
| ``max_indexes`` | how many indexes the expert would use at most |
| ``no_index_has`` | fields that no index may copy |

Identity fields at the end of an index's sort key only make entries differ and are not compared.
"""
