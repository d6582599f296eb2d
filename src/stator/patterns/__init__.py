"""The classic patterns as objects: counters, series, trees, links, locks, idempotency. Each works on a Db and on an AsyncDb."""
