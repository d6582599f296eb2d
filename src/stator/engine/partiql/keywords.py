"""PartiQL's reserved words. As attribute names they must be written in double quotes.

The list holds the words that DynamoDB's PartiQL parser refuses as bare names. It was found by
trying each word of SQL-92 and of DynamoDB's own list on DynamoDB Local. It differs from the
reserved words of expressions: ``status`` needs no quotes here.
"""

from __future__ import annotations

from typing import Final

KEYWORDS: Final = frozenset(
    """
    absolute action add all allocate alter and any are as asc assertion at authorization avg bag
    begin between bit bit_length blob bool boolean by cascade cascaded case cast catalog char
    char_length character character_length check clob close coalesce collate collation column
    commit conflict connect connection constraint constraints continue convert corresponding
    count create cross current current_date current_time current_timestamp current_user cursor
    date date_add date_diff deallocate dec decimal declare default deferrable deferred delete
    desc describe descriptor diagnostics disconnect distinct do domain double drop else end
    escape except exception exec execute exists external extract false fetch first float for
    foreign found from full get global go goto grant group having identity immediate in index
    indicator initially inner input insensitive insert int integer intersect interval into is
    isolation join key language last left let level like limit list local lower match max min
    missing modified module names national natural nchar new next no not nothing null nullif
    numeric octet_length of old on only open option or order outer output overlaps pad partial
    pivot position precision prepare preserve primary prior privileges procedure public read
    real references relative remove restrict returning revoke right rollback rows schema scroll
    section select session session_user set sexp size smallint some space sql sqlcode sqlerror
    sqlstate string struct substring sum symbol system_user table temporary then time timestamp
    to transaction translate translation trim true tuple union unique unknown unpivot update
    upper usage user using value values varchar varying view when whenever where with work write
    zone
    """.split()
)

# Keywords that are also functions: before a parenthesis they are ordinary names.
FUNCTION_KEYWORDS: Final = frozenset(
    """
    avg bit_length cast char_length character_length coalesce convert count date_add date_diff
    exists extract lower max min nullif octet_length position size substring sum translate trim
    upper
    """.split()
)

# Types that may follow IS, and how messages spell them.
TYPE_NAMES: Final = {
    "any": "ANY",
    "bag": "BAG",
    "bigint": "INTEGER8",
    "blob": "BLOB",
    "bool": "BOOLEAN",
    "boolean": "BOOLEAN",
    "char": "CHARACTER",
    "character": "CHARACTER",
    "character varying": "CHARACTER_VARYING",
    "clob": "CLOB",
    "date": "DATE",
    "dec": "DECIMAL",
    "decimal": "DECIMAL",
    "double precision": "DOUBLE_PRECISION",
    "float": "FLOAT",
    "int": "INTEGER",
    "int2": "SMALLINT",
    "int4": "INTEGER4",
    "int8": "INTEGER8",
    "integer": "INTEGER",
    "integer2": "SMALLINT",
    "integer4": "INTEGER4",
    "integer8": "INTEGER8",
    "list": "LIST",
    "missing": "MISSING",
    "null": "NULL",
    "numeric": "NUMERIC",
    "real": "REAL",
    "sexp": "SEXP",
    "smallint": "SMALLINT",
    "string": "STRING",
    "struct": "STRUCT",
    "symbol": "SYMBOL",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "tuple": "TUPLE",
    "varchar": "CHARACTER_VARYING",
}
