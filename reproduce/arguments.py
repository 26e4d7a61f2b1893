"""How the command lines read an argument's value."""

from collections.abc import Sequence

from cyclopts import Parameter, Token


class UsageError(Exception):
    """An argument's value breaks its rule."""


def _integers(kind: object, tokens: Sequence[Token]) -> int | list[int]:
    # Cyclopts itself would round 1.5.
    values = [_integer(token) for token in tokens]
    return values if kind == list[int] else values[0]


def _integer(token: Token) -> int:
    try:
        return int(token.value)
    except ValueError:
        name = (token.keyword or "").removeprefix("--")
        raise UsageError(f"`{name}` must be an integer. Received: {token.value}") from None


several = Parameter(consume_multiple=True, negative=(), show_default=False)
single = Parameter(negative=(), show_default=False)
integers_only = Parameter(negative=(), show_default=False, converter=_integers)
