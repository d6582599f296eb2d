"""Tokens to trees: one recursive-descent parser with an entry point per kind of expression.

Grammar of conditions (keywords in any case, function names as written):

    or        := and (OR and)*
    and       := not (AND not)*
    not       := NOT not | test
    test      := operand [comparator operand | BETWEEN operand AND operand | IN ( operand, ... )] | ( or )
    operand   := path | :value | function ( operand, ... ) | ( operand )

AWS reports what is wrong in a fixed order: syntax, then redundant parentheses, then unknown functions, then
functions used the wrong way, then reserved words. All but syntax are gathered while parsing and raised at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from stator.expr.lexer import END, ExpressionError, Token, syntax_error, tokenize
from stator.expr.reserved import RESERVED_WORDS
from stator.expr.tree import (
    AddAction,
    And,
    Arithmetic,
    Between,
    Compare,
    Condition,
    DeleteAction,
    Function,
    In,
    Not,
    Operand,
    Or,
    Path,
    PathPart,
    Placeholder,
    Projection,
    RemoveAction,
    SetAction,
    Tree,
    Update,
    UpdateAction,
)
from stator.model.limits import EXPRESSION_BYTES, EXPRESSION_OPERATORS, IN_OPERANDS

BOOLEAN_FUNCTIONS = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"}
)
CONDITION_FUNCTIONS = BOOLEAN_FUNCTIONS | {"size"}
UPDATE_FUNCTIONS = frozenset({"if_not_exists", "list_append"})
COMPARATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})
SECTIONS = ("SET", "REMOVE", "ADD", "DELETE")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A tree with its placeholders still in it, and which placeholders those are."""

    tree: Tree
    names: frozenset[str]
    values: frozenset[str]
    # Whether any path goes inside an attribute.
    nested: bool


@lru_cache(maxsize=4096)
def parse_condition(text: str) -> Parsed:
    parser = _Parser(text, CONDITION_FUNCTIONS)
    return parser.finish(parser.condition())


@lru_cache(maxsize=4096)
def parse_update(text: str) -> Parsed:
    parser = _Parser(text, UPDATE_FUNCTIONS)
    return parser.finish(parser.update())


@lru_cache(maxsize=4096)
def parse_projection(text: str) -> Parsed:
    parser = _Parser(text, frozenset())
    return parser.finish(parser.projection())


@dataclass(slots=True)
class _Problems:
    """The first problem of each kind, in the order AWS reports the kinds."""

    parentheses: str | None = None
    unknown_function: str | None = None
    misused_function: str | None = None
    reserved_word: str | None = None
    repeated_section: str | None = None
    count: str | None = None

    def first(self, update: bool) -> str | None:
        order = [self.parentheses, self.unknown_function, self.misused_function, self.reserved_word, self.count]
        if update:
            order = [self.reserved_word, self.unknown_function, self.repeated_section]
        return next(filter(None, order), None)


@dataclass(slots=True)
class _Parser:
    text: str
    functions: frozenset[str]
    tokens: list[Token] = field(init=False)
    index: int = 0
    problems: _Problems = field(default_factory=_Problems)
    names: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    operators: int = 0
    nested: bool = False

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ExpressionError("The expression can not be empty;")
        size = len(self.text.encode())
        if size > EXPRESSION_BYTES:
            raise ExpressionError(
                f"Expression size has exceeded the maximum allowed size; expression size: {size}"
            )
        self.tokens = tokenize(self.text)

    # -- tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def at(self, symbol: str) -> bool:
        token = self.tokens[self.index]
        return token.kind == "symbol" and token.text == symbol

    def at_word(self, word: str) -> bool:
        token = self.tokens[self.index]
        return token.kind == "name" and token.text.upper() == word

    def take(self) -> Token:
        token = self.tokens[self.index]
        self.index += 1
        return token

    def expect(self, symbol: str) -> None:
        if not self.at(symbol):
            raise self.syntax_error()
        self.index += 1

    def expect_word(self, word: str) -> None:
        if not self.at_word(word):
            raise self.syntax_error()
        self.index += 1

    def syntax_error(self) -> ExpressionError:
        return syntax_error(self.text, self.tokens, self.index)

    def finish(self, tree: Tree) -> Parsed:
        if self.token.kind != END:
            raise self.syntax_error()
        if self.operators > EXPRESSION_OPERATORS:
            raise ExpressionError(
                "The expression contains too many operators; operator count: "
                f"{self.operators}, maximum: {EXPRESSION_OPERATORS}"
            )
        problem = self.problems.first(isinstance(tree, Update))
        if problem:
            raise ExpressionError(problem)
        return Parsed(tree, frozenset(self.names), frozenset(self.values), self.nested)

    # -- conditions

    def condition(self) -> Condition:
        return self.as_condition(self.either())

    def either(self) -> Any:
        node = self.both()
        if not self.at_word("OR"):
            return node
        operands = [self.as_condition(node)]
        while self.at_word("OR"):
            self.take()
            self.operators += 1
            operands.append(self.as_condition(self.both()))
        return Or(tuple(operands))

    def both(self) -> Any:
        node = self.negation()
        if not self.at_word("AND"):
            return node
        operands = [self.as_condition(node)]
        while self.at_word("AND"):
            self.take()
            self.operators += 1
            operands.append(self.as_condition(self.negation()))
        return And(tuple(operands))

    def negation(self) -> Any:
        if self.at_word("NOT"):
            self.take()
            self.operators += 1
            return Not(self.as_condition(self.negation()))
        return self.test()

    def test(self) -> Any:
        left = self.primary()
        token = self.token
        if token.kind == "symbol" and token.text in COMPARATORS:
            self.operators += 1
            left = self.as_operand(left)
            self.take()
            return Compare(token.text, left, self.operand())
        if self.at_word("BETWEEN"):
            self.operators += 1
            left = self.as_operand(left)
            self.take()
            low = self.operand()
            self.expect_word("AND")
            return Between(left, low, self.operand())
        if self.at_word("IN"):
            self.operators += 1
            left = self.as_operand(left)
            self.take()
            return In(left, self.options())
        return left

    def options(self) -> tuple[Operand, ...]:
        self.expect("(")
        options = [self.operand()]
        while self.at(","):
            self.take()
            options.append(self.operand())
        self.expect(")")
        if len(options) > IN_OPERANDS and not self.problems.count:
            self.problems.count = _operand_count("IN", len(options) + 1)
        return tuple(options)

    def primary(self) -> Any:
        if not self.at("("):
            return self.simple_operand()
        self.take()
        doubled = self.at("(")
        node = self.either()
        # "((a))" is redundant, "((a) AND (b))" is not: the inner pair must close just before this one.
        if doubled and self.at(")") and self._closes_at_previous():
            self.problems.parentheses = "The expression has redundant parentheses;"
        self.expect(")")
        return node

    def _closes_at_previous(self) -> bool:
        """Whether the parenthesis that closed last is the partner of the one opened right inside."""
        depth = 0
        for index in range(self.index - 1, -1, -1):
            token = self.tokens[index]
            if token.kind != "symbol":
                continue
            depth += (token.text == ")") - (token.text == "(")
            if depth == 0:
                before = self.tokens[index - 1]
                return token.text == "(" and before.text == "(" and self._opens_group(index - 1)
        return False

    def _opens_group(self, index: int) -> bool:
        """Whether the parenthesis at ``index`` groups, rather than holding a function's arguments."""
        if index == 0:
            return True
        before = self.tokens[index - 1]
        return not (before.kind == "name" and before.text in self.functions)

    def as_condition(self, node: Any) -> Condition:
        if isinstance(node, Function):
            if node.name not in BOOLEAN_FUNCTIONS and not self.problems.misused_function:
                self.problems.misused_function = _misused(node.name)
            return node
        if isinstance(node, (Path, Placeholder)):
            raise self.syntax_error()
        return node  # type: ignore[no-any-return]

    def as_operand(self, node: Any) -> Operand:
        if isinstance(node, Function):
            if node.name in BOOLEAN_FUNCTIONS and not self.problems.misused_function:
                self.problems.misused_function = _misused(node.name)
            return node
        if isinstance(node, (Path, Placeholder)):
            return node
        raise self.syntax_error()

    # -- operands

    def operand(self) -> Operand:
        if self.at("("):
            self.take()
            doubled = self.at("(")
            node = self.operand()
            if doubled:
                self.problems.parentheses = "The expression has redundant parentheses;"
            self.expect(")")
            return node
        return self.as_operand(self.simple_operand())

    def simple_operand(self) -> Operand:
        token = self.token
        if token.kind == "value":
            self.take()
            self.values.add(token.text)
            return Placeholder(token.text)
        if token.kind == "name" and self.tokens[self.index + 1].text == "(":
            return self.function()
        return self.path()

    def function(self) -> Function:
        token = self.token
        if token.text.upper() in ("AND", "OR", "NOT", "BETWEEN", "IN"):
            raise self.syntax_error()
        self.take()
        if token.text not in self.functions and not self.problems.unknown_function:
            self.problems.unknown_function = f"Invalid function name; function: {token.text}"
        self.expect("(")
        self.operators += 1
        arguments = [self.argument()]
        while self.at(","):
            self.take()
            arguments.append(self.argument())
        self.expect(")")
        return Function(token.text, tuple(arguments))

    def argument(self) -> Operand:
        return self.value() if self.functions is UPDATE_FUNCTIONS else self.operand()

    def path(self) -> Path:
        parts: list[PathPart] = [self.path_name()]
        while True:
            if self.at("."):
                self.nested = True
                self.take()
                parts.append(self.path_name())
            elif self.at("["):
                self.nested = True
                self.take()
                if self.token.kind != "number":
                    raise self.syntax_error()
                parts.append(int(self.take().text))
                self.expect("]")
            else:
                return Path(tuple(parts))

    def path_name(self) -> str:
        token = self.token
        if token.kind == "alias":
            self.take()
            self.names.add(token.text)
            return token.text
        if token.kind != "name":
            raise self.syntax_error()
        self.take()
        if token.text.upper() in RESERVED_WORDS and not self.problems.reserved_word:
            self.problems.reserved_word = (
                f"Attribute name is a reserved keyword; reserved keyword: {token.text}"
            )
        return token.text

    # -- projections

    def projection(self) -> Projection:
        paths = [self.path()]
        while self.at(","):
            self.take()
            paths.append(self.path())
        return Projection(tuple(paths))

    # -- updates

    def update(self) -> Update:
        actions: list[UpdateAction] = []
        seen: set[str] = set()
        while True:
            section = self.token.text.upper()
            if self.token.kind != "name" or section not in SECTIONS:
                raise self.syntax_error()
            self.take()
            if section in seen and not self.problems.repeated_section:
                self.problems.repeated_section = (
                    f'The "{section}" section can only be used once in an update expression;'
                )
            seen.add(section)
            actions.append(self.action(section))
            while self.at(","):
                self.take()
                actions.append(self.action(section))
            if self.token.kind == END:
                return Update(tuple(actions))

    def action(self, section: str) -> UpdateAction:
        self.operators += 1
        path = self.path()
        if section == "REMOVE":
            return RemoveAction(path)
        if section == "SET":
            self.expect("=")
            return SetAction(path, self.value())
        token = self.token
        if token.kind != "value":
            raise self.syntax_error()
        self.take()
        self.values.add(token.text)
        return (AddAction if section == "ADD" else DeleteAction)(path, Placeholder(token.text))

    def value(self) -> Operand:
        left = self.term()
        if self.at("+") or self.at("-"):
            self.operators += 1
            operator = self.take().text
            return Arithmetic(operator, left, self.term())
        return left

    def term(self) -> Operand:
        if self.at("("):
            self.take()
            node = self.value()
            self.expect(")")
            return node
        return self.simple_operand()


def _misused(name: str) -> str:
    return f"The function is not allowed to be used this way in an expression; function: {name}"


def _operand_count(operator: str, count: int) -> str:
    return (
        "Incorrect number of operands for operator or function; "
        f"operator or function: {operator}, number of operands: {count}"
    )
