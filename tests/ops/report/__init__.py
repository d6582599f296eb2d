"""A month of tables."""
