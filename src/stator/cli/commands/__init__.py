"""One module per command. Each has a function ``command``, whose parameters are the options.

A command parses its options, calls the library and shows the result. Modules are imported only when
their command is called, so that ``stator --help`` starts quickly. The list of commands with their
summaries is ``stator.cli.register``.
"""
