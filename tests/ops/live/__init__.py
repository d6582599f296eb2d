"""Tests of what tables use at this moment."""
