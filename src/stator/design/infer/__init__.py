"""A design from the items of an existing table: guessed, written out as a file to edit, with a list of what is not sure.

    key_text    a key attribute of many items -> its templates: "USER#{}", "PROFILE"
    groups      items -> kinds of items, by a type attribute or by the templates of their keys
    fields      the attributes of one kind -> fields with Python types
    inference   all of it together: entities, patterns, doubts
    writing     the Python file

Nothing here reads a table: it is given items and, where there is one, the table's description.
"""

from stator.design.infer.design_file import design_file
from stator.design.infer.inference import Inference, infer

__all__ = ["Inference", "design_file", "infer"]
