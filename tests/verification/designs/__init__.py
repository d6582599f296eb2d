"""Designs of six kinds of systems, as an expert would declare them, for tests of ``verify``."""
