"""Random and systematic requests, none of which may get a 500.

``world`` builds an engine that has something of everything. ``valid`` has requests that succeed
there, for every operation. ``mutations`` changes them: every position in turn, or several at
random. ``play`` runs a numbered sequence of requests and prints a line for each answer, so that two
builds of the engine can be compared.
"""
