"""The options of ``stator simulate``, and how a simulation looks in a terminal."""
