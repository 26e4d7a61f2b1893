"""A process that is asked questions, one at a time; its threads sleep while another's turn is."""

import multiprocessing
from collections.abc import Callable
from typing import Any, Self


class Asked:
    """A spawned process that answers until this side closes.

    Args:
        serve: what it runs: takes its end of a pipe, and the arguments. Ends at an `EOFError`.
        arguments: of `serve`.
    """

    def __init__(self, serve: Callable[..., None], *arguments: Any):
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()
        self._process.join(timeout=10.0)
        self._process.kill()

    def ask(self, *question: Any) -> Any:
        """Returns the answer to a question.

        Raises:
            EOFError: the process has ended.
        """
        self._connection.send(question)
        return self._connection.recv()
