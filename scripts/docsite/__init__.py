"""The documentation site: ``make docs`` builds it in ``build/site``.

``sources`` says which files become pages, ``navigation`` where they stand, and ``markdown`` adapts
GitHub's Markdown to the generator's. ``public_api`` and ``commands`` read what the reference is
made of, ``api_pages`` and ``command_pages`` write it. ``build`` puts everything together, runs the
generator, and ``built_site`` checks the result.
"""
