"""A month of tables: what was used, what it cost, and what to change."""
