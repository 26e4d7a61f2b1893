"""Runs a command and turns how it ended into a line on stderr and an exit code."""

import io
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from cyclopts import App, CycloptsError, UnusedCliTokensError

from reproduce.arguments import UsageError
from reproduce.cli.app import app as commands

FAILED, USAGE = 1, 2
_SIGNALLED = 128


class TerminatedError(BaseException):
    """SIGTERM arrived; like KeyboardInterrupt, no handler of errors catches it."""


def main(arguments: Sequence[str] | None = None, *, app: App = commands) -> int:
    """Runs a command.

    Args:
        arguments: The words after the program's name; `None`: those it was started with.
        app: The commands.

    Returns:
        The exit code: 0 done, 1 a run or the storage failed, 2 bad arguments, 130 interrupted,
        143 terminated.
    """
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        # A terminal of another encoding shows what it lacks as \xb1, rather than nothing at all.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return _dispatch(app, sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return _stopped("interrupted", signal.SIGINT)
    except TerminatedError:
        return _stopped("terminated", signal.SIGTERM)


def _dispatch(app: App, arguments: list[str]) -> int:
    from reproduce.data import DataError
    from reproduce.storage import StorageError

    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except UnusedCliTokensError as error:
        words = " ".join(error.unused_tokens or ())
        return _complain(UsageError(f"unknown words, as switches take no value: {words}"), USAGE)
    except (CycloptsError, UsageError) as error:
        return _complain(error, USAGE)
    except (StorageError, DataError, OSError) as error:
        return _complain(error, FAILED)
    return code if isinstance(code, int) else 0


def _complain(error: Exception, code: int) -> int:
    print(f"reproduce: error: {error}", file=sys.stderr)
    return code


def _terminate(number: int, frame: FrameType | None) -> None:
    raise TerminatedError


def _stopped(how: str, number: signal.Signals) -> int:
    print(
        f"\nreproduce: {how}; finished runs are recorded, the same command goes on from there",
        file=sys.stderr,
    )
    return _SIGNALLED + number
