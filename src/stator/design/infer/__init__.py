"""A design proposed from the items of an existing table, with a list of the guesses.

    key_text     key attributes of many items -> their templates: "USER#{}", "PROFILE"
    groups       items -> kinds of items, by a type attribute or by the templates of their keys
    table_keys   the key attributes of the table and its indexes
    fields       the attributes of one kind -> fields with Python types
    inference    all of it together: entities, patterns, guesses
    design_file  the Python file

Nothing here reads a table. The caller passes items and, if known, the table's description;
``stator infer`` reads them.
"""

from stator.design.infer.design_file import design_file
from stator.design.infer.inference import Inference, infer

__all__ = ["Inference", "design_file", "infer"]
