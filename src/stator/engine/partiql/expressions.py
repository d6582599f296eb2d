"""The parser of expressions. It works by operator precedence, like PartiQL's own parser.

It therefore finds the same errors as that parser. The operators, loosest first: OR, AND, NOT, then
= <> IS IN, then < <= > >= BETWEEN LIKE, then + - ||, then * / %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stator.engine.partiql import syntax
from stator.engine.partiql.keywords import FUNCTION_KEYWORDS, TYPE_NAMES
from stator.engine.partiql.lexer import END, Position, StatementToken, malformed
from stator.engine.partiql.syntax import Expression, Step

_PRECEDENCE: Final = {
    "or": 1,
    "and": 2,
    "not": 3,
    **dict.fromkeys(("=", "<>", "is", "in"), 4),
    **dict.fromkeys(("<", "<=", ">", ">=", "between", "like"), 5),
    **dict.fromkeys(("+", "-", "||"), 6),
    **dict.fromkeys(("*", "/", "%"), 7),
}
_NEGATABLE: Final = ("in", "between", "like")
_CONSTANTS: Final = ("true", "false", "null", "missing")
_CLOSING: Final = {
    "]": "RIGHT_BRACKET",
    ">>": "RIGHT_DOUBLE_ANGLE_BRACKET",
    "}": "RIGHT_CURLY",
    ")": "RIGHT_PAREN",
}
# DynamoDB stores 32 levels, and no condition needs as many parentheses. A bound protects Python's
# stack.
_DEEPEST: Final = 64


@dataclass(slots=True)
class ExpressionParser:
    tokens: list[StatementToken]
    index: int = 0
    depth: int = 0
    parameters: int = 0

    # -- tokens

    @property
    def token(self) -> StatementToken:
        return self.tokens[self.index]

    def at_symbol(self, symbol: str, ahead: int = 0) -> bool:
        token = self.tokens[min(self.index + ahead, len(self.tokens) - 1)]
        return token.kind == "symbol" and token.text == symbol

    def at_word(self, *words: str, ahead: int = 0) -> bool:
        token = self.tokens[min(self.index + ahead, len(self.tokens) - 1)]
        return token.kind == "keyword" and token.text in words

    def at_name(self) -> bool:
        return self.token.kind in ("name", "quoted")

    def take(self) -> StatementToken:
        token = self.token
        self.index += token.kind != END
        return token

    def take_symbol(self, symbol: str) -> bool:
        return self.at_symbol(symbol) and bool(self.take())

    def take_word(self, *words: str) -> bool:
        return self.at_word(*words) and bool(self.take())

    def expect_closing(self, symbol: str) -> None:
        if not self.take_symbol(symbol):
            raise malformed(f"Expected {_CLOSING[symbol]}")

    # -- expressions

    def expression(self, precedence: int = 0) -> Expression:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise malformed("Expression is nested too deeply")
        left = self._prefixed()
        while (operator := self._infix()) is not None and _PRECEDENCE[operator] > precedence:
            left = self._continued(left, operator)
        self.depth -= 1
        return left

    def list_of_expressions(self) -> tuple[Expression, ...]:
        found = [self.expression()]
        while self.take_symbol(","):
            found.append(self.expression())
        return tuple(found)

    def _infix(self) -> str | None:
        token = self.token
        if token.kind not in ("symbol", "keyword"):
            return None
        if token.text == "not":
            return self.tokens[self.index + 1].text if self.at_word(*_NEGATABLE, ahead=1) else None
        return token.text if token.text in _PRECEDENCE else None

    def _continued(self, left: Expression, operator: str) -> Expression:
        at = self.token.at
        negated = self.take_word("not")
        self.take()
        match operator:
            case "is":
                negated = self.take_word("not")
                node: Expression = syntax.IsType(left, self._type_name(), at)
            case "in":
                node = syntax.OperatorExpression("in", (left, self._in_operand()), at)
            case "between":
                low = self._right("between")
                if not self.take_word("and"):
                    raise malformed("Expected AND keyword")
                if self.token.kind == END:
                    raise malformed("Expected expression after AND")
                high = self.expression(_PRECEDENCE["between"])
                node = syntax.OperatorExpression("between", (left, low, high), at)
            case "and" | "or":
                return self._chained(operator, left, self._right(operator), at)
            case _:
                node = syntax.OperatorExpression(operator, (left, self._right(operator)), at)
        return syntax.OperatorExpression("not", (node,), at) if negated else node

    def _chained(
        self, operator: str, left: Expression, right: Expression, at: Position
    ) -> Expression:
        if isinstance(left, syntax.OperatorExpression) and left.operator == operator:
            return syntax.OperatorExpression(operator, (*left.operands, right), left.at)
        return syntax.OperatorExpression(operator, (left, right), at)

    def _right(self, operator: str) -> Expression:
        if self.token.kind == END:
            raise malformed("Missing right-hand side expression of infix operator")
        return self.expression(_PRECEDENCE[operator])

    def _in_operand(self) -> Expression:
        if not self.at_symbol("(") or self.at_word("select", "values", ahead=1):
            return self._right("in")
        at = self.take().at
        members = self.list_of_expressions()
        self.expect_closing(")")
        return syntax.SequenceLiteral("list", members, at)

    def _type_name(self) -> str:
        word = self.take().text.lower() if self.token.kind in ("keyword", "name") else ""
        if word in ("double", "character") and self.token.text.lower() in ("precision", "varying"):
            word = f"{word} {self.take().text.lower()}"
        if word not in TYPE_NAMES:
            raise malformed("Expected type name")
        return TYPE_NAMES[word]

    def _prefixed(self) -> Expression:
        token = self.token
        if token.kind == "keyword" and token.text == "not":
            self.take()
            return syntax.OperatorExpression(
                "not", (self.expression(_PRECEDENCE["not"]),), token.at
            )
        if token.kind == "symbol" and token.text in ("+", "-"):
            self.take()
            self.depth += 1
            if self.depth > _DEEPEST:
                raise malformed("Expression is nested too deeply")
            operand = self._prefixed()
            self.depth -= 1
            return _signed(token, operand)
        return self._path(self._term())

    # -- terms

    def _path(self, term: Expression) -> Expression:
        steps = self._steps()
        if not steps:
            return term
        if isinstance(term, syntax.Reference):
            return syntax.Reference(term.name, term.steps + steps, term.at)
        raise malformed("Invalid path component")

    def simple_path(self) -> syntax.Reference:
        """Parse a path that starts with a name, such as a table or the target of SET or REMOVE."""
        if not self.at_name():
            raise malformed("Expected identifier for simple path")
        token = self.take()
        return syntax.Reference(token.text, self._steps(), token.at)

    def _steps(self) -> tuple[Step, ...]:
        steps: list[Step] = []
        while True:
            if self.at_symbol("."):
                self.take()
                steps.append(self._after_dot())
            elif self.at_symbol("["):
                at = self.take().at
                steps.append(self._in_brackets(at))
                self.expect_closing("]")
            else:
                return tuple(steps)

    def _after_dot(self) -> Step:
        token = self.token
        if self.at_name():
            self.take()
            return syntax.Key(token.text, token.at)
        if self.take_symbol("*"):
            return syntax.Star(True, token.at)
        raise malformed("Invalid path dot component")

    def _in_brackets(self, at: Position) -> Step:
        if self.at_symbol("*"):
            return syntax.Star(False, self.take().at)
        value = self.expression()
        if isinstance(value, syntax.Constant) and value.kind == "text":
            return syntax.Key(value.text, value.at)
        return syntax.Subscript(value, at)

    def _term(self) -> Expression:
        token = self.token
        match token.kind:
            case "name" | "quoted":
                if token.kind == "name" and self.at_symbol("(", ahead=1):
                    return self._call()
                self.take()
                return syntax.Reference(token.text, (), token.at)
            case "text" | "number" | "ion":
                self.take()
                return syntax.Constant(token.kind, token.text, token.at)
            case "keyword":
                return self._keyword_term()
            case "symbol":
                return self._symbol_term()
        raise malformed("Unexpected term")

    def _keyword_term(self) -> Expression:
        token = self.token
        if token.text in _CONSTANTS:
            self.take()
            return syntax.Constant(token.text, token.text, token.at)
        if token.text in FUNCTION_KEYWORDS and self.at_symbol("(", ahead=1):
            return self._call()
        if token.text in ("is", "in", "like", "between", "and", "or"):
            raise malformed("Unexpected operator")
        return self.statement_term()

    def statement_term(self) -> Expression:
        """Parse a statement inside an expression. The statement parser overrides this method."""
        raise malformed("Unexpected keyword")

    def _call(self) -> Expression:
        name = self.take()
        self.take()
        arguments: tuple[Expression, ...] = ()
        if self.at_symbol("*") and name.text.lower() == "count":
            self.take()
        elif not self.at_symbol(")"):
            arguments = self.list_of_expressions()
        self.expect_closing(")")
        return syntax.FunctionCall(name.text.lower(), arguments, name.at)

    def _symbol_term(self) -> Expression:
        token = self.token
        match token.text:
            case "?":
                self.take()
                self.parameters += 1
                return syntax.Parameter(self.parameters - 1, token.at)
            case "(":
                self.take()
                members = self.list_of_expressions()
                self.expect_closing(")")
                return (
                    members[0]
                    if len(members) == 1
                    else syntax.SequenceLiteral("row", members, token.at)
                )
            case "[":
                return self._sequence("list", "]")
            case "<<":
                return self._sequence("bag", ">>")
            case "{":
                return self._struct()
            case "@":
                self.take()
                if not self.at_name():
                    raise malformed("Identifier must follow @-operator")
                return syntax.Reference(self.take().text, (), token.at)
            case "=" | "<>" | "<" | "<=" | ">" | ">=" | "/" | "%" | "||":
                raise malformed("Unexpected operator")
        raise malformed("Unexpected term")

    def _sequence(self, kind: str, closing: str) -> Expression:
        at = self.take().at
        members = () if self.at_symbol(closing) else self.list_of_expressions()
        self.expect_closing(closing)
        return syntax.SequenceLiteral(kind, members, at)

    def _struct(self) -> Expression:
        at = self.take().at
        members: list[tuple[Expression, Expression]] = []
        while not (self.at_symbol("}") and not members):
            key = self.expression()
            if not self.take_symbol(":"):
                raise malformed("Expected COLON")
            members.append((key, self.expression()))
            if not self.take_symbol(","):
                break
        self.expect_closing("}")
        return syntax.Struct(tuple(members), at)


def _signed(sign: StatementToken, operand: Expression) -> Expression:
    """Return the expression of a sign and its operand. A number absorbs its sign: ``-1``."""
    if not (isinstance(operand, syntax.Constant) and operand.kind == "number"):
        return syntax.OperatorExpression(sign.text, (operand,), sign.at)
    if sign.text == "+":
        return operand
    text = operand.text[1:] if operand.text.startswith("-") else f"-{operand.text}"
    return syntax.Constant("number", text, operand.at)
