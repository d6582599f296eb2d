"""Commands that move data between tables and other systems.

Other commands of the group Motion lie beside this package.
"""
