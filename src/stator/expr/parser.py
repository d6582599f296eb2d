"""The parser: builds a tree from the tokens of a condition, an update or a projection.

Grammar of conditions (keywords in any case, function names as written):

    or        := and (OR and)*
    and       := not (AND not)*
    not       := NOT not | test
    test      := operand [comparator operand | BETWEEN operand AND operand
                          | IN ( operand, ... )] | ( or )
    operand   := path | :value | function ( operand, ... ) | ( operand )

AWS reports problems in a fixed order: syntax; redundant parentheses; the leftmost unknown or
misplaced function, reserved word or list index; a repeated section of an update; too many
operators. A syntax error is raised at once; the first of the other problems, at the end.

Nested groups and calls use explicit stacks instead of Python's call stack: 4 KB of text can nest
two thousand of them.
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
    ProjectionExpression,
    RemoveAction,
    SetAction,
    Tree,
    UpdateAction,
    UpdateExpression,
)
from stator.model.limits import EXPRESSION_BYTES, EXPRESSION_OPERATORS, LIST_INDEX

BOOLEAN_FUNCTIONS = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"}
)
CONDITION_FUNCTIONS = BOOLEAN_FUNCTIONS | {"size"}
UPDATE_FUNCTIONS = frozenset({"if_not_exists", "list_append"})
# Functions that form a whole condition or value, never a part of one.
_NO_OPERANDS = BOOLEAN_FUNCTIONS | {"list_append"}
_KEYWORDS = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN"})
COMPARATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})
SECTIONS = ("SET", "REMOVE", "ADD", "DELETE")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A tree that is not bound yet, and its placeholders: ``#names`` and ``:values``."""

    tree: Tree
    names: frozenset[str]
    values: frozenset[str]
    # Whether a path leads into an attribute.
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
class _Group:
    """The terms read so far at the top level, or inside one pair of parentheses.

    ``conjuncts`` are the terms of the current AND chain. ``disjuncts`` are the finished chains,
    which OR joins. ``negations`` counts the NOTs before the next term.
    """

    opened: int
    negations: int = 0
    conjuncts: list[Condition] = field(default_factory=list)
    disjuncts: list[Condition] = field(default_factory=list)


@dataclass(slots=True)
class _Parser:
    text: str
    functions: frozenset[str]
    tokens: list[Token] = field(init=False)
    index: int = 0
    # The leftmost problem other than syntax, and the token where it is.
    problem: tuple[int, str] | None = None
    redundant: bool = False
    repeated_section: str | None = None
    # The token where each call begins, by the identity of its node.
    calls: dict[int, int] = field(default_factory=dict)
    # The tokens of the pair of parentheses that closed last.
    closed: tuple[int, int] = (-1, -1)
    names: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    operators: int = 0
    nested: bool = False

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise ExpressionError("The expression can not be empty;")
        size = len(self.text.encode())
        if size > EXPRESSION_BYTES:
            # AWS does not print the size of an update.
            shown = "" if self.functions is UPDATE_FUNCTIONS else f" expression size: {size}"
            raise ExpressionError(f"Expression size has exceeded the maximum allowed size;{shown}")
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

    def note(self, index: int, problem: str) -> None:
        if self.problem is None or index < self.problem[0]:
            self.problem = (index, problem)

    def finish(self, tree: Tree) -> Parsed:
        if self.token.kind != END:
            raise self.syntax_error()
        if self.redundant:
            raise ExpressionError("The expression has redundant parentheses;")
        if self.problem is not None:
            raise ExpressionError(self.problem[1])
        if self.repeated_section is not None:
            raise ExpressionError(
                f'The "{self.repeated_section}" section can only be used once in an update '
                "expression;"
            )
        if self.operators > EXPRESSION_OPERATORS:  # AWS stops counting at the first too many
            raise ExpressionError(
                "The expression contains too many operators; "
                f"operator count: {EXPRESSION_OPERATORS + 1}"
            )
        return Parsed(tree, frozenset(self.names), frozenset(self.values), self.nested)

    # -- conditions

    def condition(self) -> Condition:
        outer: list[_Group] = []
        group = _Group(-1)
        while True:
            if self.at_word("NOT"):
                self.take()
                self.operators += 1
                group.negations += 1
                continue
            if self.at("("):
                outer.append(group)
                group = _Group(self.index)
                self.take()
                continue
            node = self.test(self.simple_operand())
            while outer and self.at(")"):
                node = self.whole(group, node)
                self.close(group.opened)
                node = self.test(node)
                group = outer.pop()
            if self.at_word("AND"):
                group.conjuncts.append(self.negated(group, node))
            elif self.at_word("OR"):
                group.disjuncts.append(self.conjunction(group, node))
            elif outer:
                raise self.syntax_error()
            else:
                return self.as_condition(self.whole(group, node))
            self.take()
            self.operators += 1

    def negated(self, group: _Group, node: Any) -> Condition:
        condition = self.as_condition(node)
        for _ in range(group.negations):
            condition = Not(condition)
        group.negations = 0
        return condition

    def conjunction(self, group: _Group, node: Any) -> Condition:
        condition = self.negated(group, node)
        if not group.conjuncts:
            return condition
        conjuncts, group.conjuncts = group.conjuncts, []
        return And((*conjuncts, condition))

    def whole(self, group: _Group, node: Any) -> Any:
        """Return the condition of a whole group, whose last term is ``node``.

        If the group has no other term and no NOT, ``node`` itself is returned. It may then be an
        operand instead of a condition, as in ``(a)``.
        """
        if not (group.negations or group.conjuncts or group.disjuncts):
            return node
        condition = self.conjunction(group, node)
        return Or((*group.disjuncts, condition)) if group.disjuncts else condition

    def close(self, opened: int) -> None:
        """Consume a closing parenthesis, and note whether its pair is redundant.

        ``opened`` is the token index of the opening parenthesis. ``((a))`` has a redundant pair and
        is refused later; ``((a) AND (b))`` is allowed.
        """
        if self.closed == (opened + 1, self.index - 1):
            self.redundant = True
        self.closed = (opened, self.index)
        self.expect(")")

    def test(self, left: Any) -> Any:
        """Parse the comparator, BETWEEN or IN that may follow ``left``, and return the condition.

        Returns ``left`` itself if none of them follows.
        """
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
        return tuple(options)

    def as_condition(self, node: Any) -> Condition:
        if isinstance(node, Function):
            if node.name not in BOOLEAN_FUNCTIONS:
                self.note(self.calls[id(node)], _misused(node.name))
            return node
        if isinstance(node, (Path, Placeholder)):
            raise self.syntax_error()
        return node  # type: ignore[no-any-return]

    def as_operand(self, node: Any) -> Operand:
        if isinstance(node, Function):
            if node.name in _NO_OPERANDS:
                self.note(self.calls[id(node)], _misused(node.name))
            return node
        if isinstance(node, (Path, Placeholder)):
            return node
        raise self.syntax_error()

    # -- operands

    def operand(self) -> Operand:
        """Parse a path, value or call, with or without parentheses."""
        opened: list[int] = []
        while self.at("("):
            opened.append(self.index)
            self.take()
        node = self.as_operand(self.simple_operand())
        while opened:
            self.close(opened.pop())
        return node

    def simple_operand(self) -> Operand:
        token = self.token
        if token.kind == "value":
            self.take()
            self.values.add(token.text)
            return Placeholder(token.text)
        return self.function() if self.at_call() else self.path()

    def at_call(self) -> bool:
        return self.token.kind == "name" and self.tokens[self.index + 1].text == "("

    def function(self) -> Function:
        """Parse a function call, including calls nested in its arguments."""
        open_calls: list[tuple[int, list[Operand]]] = []
        while True:
            if self.at_call():
                open_calls.append((self.index, []))
                self.begin_call()
                continue
            open_calls[-1][1].append(self.operand())
            while not self.at(","):
                self.expect(")")
                start, arguments = open_calls.pop()
                call = Function(self.tokens[start].text, tuple(arguments))
                self.calls[id(call)] = start
                if not open_calls:
                    return call
                open_calls[-1][1].append(self.as_operand(call))
            self.take()

    def begin_call(self) -> None:
        name = self.token.text
        if name.upper() in _KEYWORDS:
            raise self.syntax_error()
        if name not in self.functions:
            self.note(self.index, self.unavailable(name))
        self.take()
        self.expect("(")
        self.operators += 1

    def unavailable(self, name: str) -> str:
        if name not in CONDITION_FUNCTIONS | UPDATE_FUNCTIONS:
            return f"Invalid function name; function: {name}"
        kind = "an update" if self.functions is UPDATE_FUNCTIONS else "a condition"
        return f"The function is not allowed in {kind} expression; function: {name}"

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
                parts.append(self.list_index())
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
        if token.text.upper() in RESERVED_WORDS:
            self.note(
                self.index - 1,
                f"Attribute name is a reserved keyword; reserved keyword: {token.text}",
            )
        return token.text

    def list_index(self) -> int:
        index = int(self.token.text)
        if index > LIST_INDEX:
            self.note(self.index, f"List index is not within the allowable range; index: [{index}]")
        self.take()
        return index

    # -- projections

    def projection(self) -> ProjectionExpression:
        paths = [self.path()]
        while self.at(","):
            self.take()
            paths.append(self.path())
        return ProjectionExpression(tuple(paths))

    # -- updates

    def update(self) -> UpdateExpression:
        actions: list[UpdateAction] = []
        seen: set[str] = set()
        while True:
            section = self.token.text.upper()
            if self.token.kind != "name" or section not in SECTIONS:
                raise self.syntax_error()
            self.take()
            if section in seen and self.repeated_section is None:
                self.repeated_section = section
            seen.add(section)
            actions.append(self.action(section))
            while self.at(","):
                self.take()
                actions.append(self.action(section))
            if self.token.kind == END:
                return UpdateExpression(tuple(actions))

    def action(self, section: str) -> UpdateAction:
        path = self.path()
        if section == "REMOVE":
            return RemoveAction(path)
        if section == "SET":
            self.expect("=")
            return SetAction(path, self.set_value())
        token = self.token
        if token.kind != "value":
            raise self.syntax_error()
        self.take()
        self.values.add(token.text)
        return (AddAction if section == "ADD" else DeleteAction)(path, Placeholder(token.text))

    def set_value(self) -> Operand:
        """Parse an operand, or the sum or difference of two, with or without parentheses."""
        opened: list[int] = []
        while self.at("("):
            opened.append(self.index)
            self.take()
        node = self.simple_operand()
        while True:
            if not isinstance(node, Arithmetic) and (self.at("+") or self.at("-")):
                self.operators += 1
                left = self.as_operand(node)
                node = Arithmetic(self.take().text, left, self.operand())
            if not opened:
                return node
            self.close(opened.pop())


def _misused(name: str) -> str:
    return f"The function is not allowed to be used this way in an expression; function: {name}"
