"""The parser of statements. Keywords may have any case.

The grammar, with DynamoDB's additions to SQL:

    select := SELECT (* | path, ..) FROM table[.index] [WHERE condition]
              [ORDER BY key [ASC|DESC], ..]
    insert := INSERT INTO table VALUE {..}
    update := UPDATE table changes [WHERE condition] [returning]
            | FROM table [WHERE condition] changes [returning]
    changes := (SET path = value, .. | REMOVE path)+
    delete := DELETE FROM table [WHERE condition] [returning]
    returning := RETURNING (ALL|MODIFIED) (OLD|NEW) *
    exists := EXISTS ( select )

PartiQL's grammar is larger than DynamoDB's language. Clauses that AWS parses and then refuses are
parsed here, too. The binder then refuses them with AWS's texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from stator.engine.partiql import syntax
from stator.engine.partiql.expressions import ExpressionParser
from stator.engine.partiql.lexer import END, Position, malformed, tokenize
from stator.engine.partiql.syntax import Expression

ALIASING = "Aliasing is not supported"
_SEVERAL_SOURCES = "Only select from a single table or index is supported."


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    statement: Expression
    parameters: int


@lru_cache(maxsize=4096)
def parse(text: str) -> ParsedStatement:
    try:
        parser = StatementParser(tokenize(text))
        statement = parser.expression()
    except RecursionError:
        raise malformed("Expression is nested too deeply") from None
    parser.take_symbol(";")
    if parser.token.kind != END:
        raise malformed("Unexpected token after expression")
    return ParsedStatement(statement, parser.parameters)


class StatementParser(ExpressionParser):
    __slots__ = ()

    def statement_term(self) -> Expression:
        at = self.token.at
        match self.token.text:
            case "select":
                self.take()
                return self._select(at)
            case "insert" if self.at_word("into", ahead=1):
                self.index += 2
                return self._insert(at)
            case "update":
                self.take()
                return self._update(at)
            case "delete":
                self.take()
                return self._delete(at)
            case "from":
                self.take()
                return self._from_first(at)
            case "create" | "drop":
                return self._definition(at)
            case "case":
                raise malformed("Expected a WHEN clause in CASE")
        raise malformed("Unexpected keyword")

    # -- SELECT

    def _select(self, at: Position) -> Expression:
        refusal = None
        if self.take_word("distinct"):
            refusal = "Unsupported token in expression: DISTINCT"
        if self.take_word("value"):
            refusal = "Select projection doesn't support value or pivot keywords"
        projection, aliased = self._projection()
        if not self.take_word("from"):
            raise malformed("Expected FROM after SELECT list")
        source, source_refusal = self._source()
        where = self.expression() if self.take_word("where") else None
        clause = self._unsupported_clauses()
        order = self._order()
        clause = clause or self._unsupported_clauses()
        refusal = refusal or (ALIASING if aliased else None) or source_refusal or clause
        return syntax.SelectStatement(projection, source, where, order, refusal, at)

    def _projection(self) -> tuple[tuple[Expression, ...], bool]:
        if self.at_symbol("*"):
            self.take()
            if self.at_symbol(","):
                raise malformed(
                    "Other expressions may not be present in the select list when '*' is "
                    "used without dot notation."
                )
            return (), False
        paths = [self.expression()]
        aliased = self._alias()
        while self.take_symbol(","):
            paths.append(self.expression())
            aliased = self._alias() or aliased
        return tuple(paths), aliased

    def _alias(self) -> bool:
        if self.take_word("as", "at", "by"):
            if not self.at_name():
                raise malformed("Expected identifier for alias")
            self.take()
            return True
        return self.at_name() and bool(self.take())

    def _source(self) -> tuple[Expression, str | None]:
        if self.at_symbol("(") and self.at_word("select", ahead=1):
            raise malformed("Expected RIGHT_PAREN")
        source = self.expression()
        refusal = ALIASING if self._alias() else None
        while self._joined():
            self.expression()
            self._alias()
            refusal = _SEVERAL_SOURCES
        return source, refusal

    def _joined(self) -> bool:
        if self.take_symbol(","):
            return True
        if self.at_word("cross", "inner", "left", "right", "full", "outer", "join"):
            raise malformed("Expected 'ON'")
        return False

    def _unsupported_clauses(self) -> str | None:
        refusal = None
        if self.at_word("group") and self.at_word("by", ahead=1):
            self.index += 2
            self.list_of_expressions()
            refusal = "Unsupported clause: GROUP BY"
        for word in ("having", "limit"):
            if self.take_word(word):
                at = self.token.at
                self.expression()
                refusal = refusal or f"Unsupported clause: {word.upper()} at {at}"
        return refusal

    def _order(self) -> tuple[syntax.OrderTerm, ...]:
        if not (self.at_word("order") and self.at_word("by", ahead=1)):
            return ()
        self.index += 2
        terms = [self._order_term()]
        while self.take_symbol(","):
            terms.append(self._order_term())
        return tuple(terms)

    def _order_term(self) -> syntax.OrderTerm:
        value = self.expression()
        if self.take_word("desc"):
            return syntax.OrderTerm(value, True)
        self.take_word("asc")
        return syntax.OrderTerm(value, False)

    # -- writes

    def _insert(self, at: Position) -> Expression:
        table = self.simple_path()
        if not self.take_word("value"):
            self.expression()
            return syntax.Unsupported("InsertOp", at)
        value = self.expression()
        returning, refusal = self._returning()
        return syntax.InsertStatement(table, value, bool(returning or refusal), at)

    def _update(self, at: Position) -> Expression:
        table = self.simple_path()
        aliased = self._alias()
        changes = self._changes()
        where = self.expression() if self.take_word("where") else None
        returning, refusal = self._returning()
        return syntax.UpdateStatement(
            table, changes, where, returning, ALIASING if aliased else refusal, at
        )

    def _from_first(self, at: Position) -> Expression:
        table, source_refusal = self._source()
        where = self.expression() if self.take_word("where") else None
        changes = self._changes()
        returning, refusal = self._returning()
        return syntax.UpdateStatement(
            table, changes, where, returning, source_refusal or refusal, at
        )

    def _delete(self, at: Position) -> Expression:
        if not self.take_word("from"):
            raise malformed("Expected FROM after DELETE")
        table = self.simple_path()
        aliased = self._alias()
        where = self.expression() if self.take_word("where") else None
        returning, refusal = self._returning()
        return syntax.DeleteStatement(table, where, returning, ALIASING if aliased else refusal, at)

    def _changes(self) -> tuple[syntax.SetClause | syntax.RemoveClause, ...]:
        changes: list[syntax.SetClause | syntax.RemoveClause] = []
        while True:
            if self.take_word("set"):
                changes.append(self._assignment())
                while self.take_symbol(","):
                    changes.append(self._assignment())
            elif self.take_word("remove"):
                changes.append(syntax.RemoveClause(self.simple_path()))
            elif changes:
                return tuple(changes)
            else:
                raise malformed("Expected data manipulation")

    def _assignment(self) -> syntax.SetClause:
        target = self.simple_path()
        if not self.take_symbol("="):
            raise malformed("Expected '='")
        return syntax.SetClause(target, self.expression())

    def _returning(self) -> tuple[str | None, str | None]:
        """Parse a RETURNING clause. Return its words, such as ``ALL OLD``, and a refusal.

        The refusal is AWS's error for a clause that PartiQL has but DynamoDB refuses, else None.
        The words and the refusal are None if there is no clause.
        """
        if not self.take_word("returning"):
            return None, None
        returning, refusal = self._returning_element()
        while self.take_symbol(","):
            self._returning_element()
            refusal = "Invalid syntax with multiple returning elements in RETURNING clause"
        return returning, refusal

    def _returning_element(self) -> tuple[str, str | None]:
        words = (self.take().text.upper(), self.take().text.upper())
        if words[0] not in ("ALL", "MODIFIED") or words[1] not in ("OLD", "NEW"):
            raise malformed("Expected ( MODIFIED | ALL ) ( NEW | OLD ) in each returning element.")
        if self.take_symbol("*"):
            return " ".join(words), None
        self.expression()
        return " ".join(
            words
        ), "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause"

    def _definition(self, at: Position) -> Expression:
        verb = self.take().text
        if not self.take_word("table"):
            raise malformed(f"Unexpected token following {verb.upper()}")
        if not self.at_name():
            raise malformed("Expected identifier!")
        self.take()
        return syntax.Unsupported(f"{verb.capitalize()}Table", at)
