"""Commands that look after tables in production: what to pay for them, and how they scale.

Other commands of the group Operate lie beside this package.
"""
