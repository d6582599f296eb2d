"""Tests of the codebase itself: what keeps it easy to enter."""
