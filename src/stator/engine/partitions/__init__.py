"""Throughput of tables and indexes: charges every request, and refuses those that exceed a limit.

The rules are in ``stator.model.heat``. This package connects them to the engine. It decides which
requests are charged to which keys, words refusals as AWS does, and stores the partitions.
"""
