"""Answers captured from AWS by the public paritysuite conformance suite."""
