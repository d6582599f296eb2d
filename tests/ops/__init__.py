"""Tools that operate tables. See ``capacity`` and ``dashboards``."""
