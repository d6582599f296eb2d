"""A design proposed from the items of existing tables, with a list of the guesses.

    words         names of tables, key words and attributes -> names of entities and fields
    key_text      key attributes of many items -> their templates: "USER#{}", "PROFILE"
    table_keys    the key attributes of the table and its indexes
    groups        items -> kinds of items, by a type attribute or by the templates of their keys
    fields        the attributes of one kind -> fields with Python types
    entity_guess  one kind of items -> an entity with its keys
    inference     one table -> entities, patterns, guesses
    design_file   the Python file
    fit           checks that the design fits the tables and items it came from
    proposal      the whole inference: tries detailed guesses first, until one fits

Nothing here reads a table. The caller passes items and, if known, the table's description;
``stator infer`` reads them.
"""

from stator.design.infer.design_file import design_file
from stator.design.infer.entity_guess import GuessedEntity
from stator.design.infer.inference import GuessedPattern, GuessedTable, Inference, TableSample
from stator.design.infer.proposal import infer, infer_tables

__all__ = [
    "GuessedEntity",
    "GuessedPattern",
    "GuessedTable",
    "Inference",
    "TableSample",
    "design_file",
    "infer",
    "infer_tables",
]
