"""Data in motion: bulk loads and exports, stream workers, views, sinks."""
