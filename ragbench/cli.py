"""The command line: find the sub-command, run it, turn errors into one sentence.

Exit codes: 0 done, 1 a check (verify, gate, data check) or an arm failed, 2 bad input or a missing part, 130
interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from ragbench import processes
from ragbench.commands import SUMMARY
from ragbench.errors import ArmsFailed, RagbenchError
from ragbench.exit_codes import BAD_INPUT, FAILED, INTERRUPTED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Small matrix products are slower on several threads, and far slower when another process wants the cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if words[0] == "--version":
        from importlib.metadata import version

        print(f"ragbench {version('ragbench')}")
        return 0
    command = words[0]
    if command not in SUMMARY:
        print(f"ragbench: there is no command '{command}'; the commands are {', '.join(SUMMARY)}", file=sys.stderr)
        return BAD_INPUT
    module = importlib.import_module(f"ragbench.commands.{command.replace('-', '_')}")
    parser = argparse.ArgumentParser(
        prog=f"ragbench {command}",
        description=module.DESCRIPTION,
        epilog=module.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    parser.add_argument("--verbose", "-v", action="store_true", help="what libraries log, and where an error came from")
    try:
        parsed = parser.parse_intermixed_args(words[1:])
    except SystemExit as stop:
        return int(stop.code or 0)
    if parsed.verbose:
        import logging

        logging.basicConfig(level=logging.INFO)
    try:
        return int(module.main(parsed))
    except RagbenchError as error:
        if parsed.verbose:
            import traceback

            traceback.print_exc()
        print(f"ragbench: {error}", file=sys.stderr)
        return FAILED if isinstance(error, ArmsFailed) else BAD_INPUT
    except BrokenPipeError:
        # The reader of a pipe has gone (`ragbench list | head`); keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if parsed.verbose:
            raise
        where = f"{error.filename} " if error.filename else "a file "
        reason = (error.strerror or str(error)).lower()
        print(
            f"ragbench: {where}cannot be used ({reason}): check the path, its permissions and free space",
            file=sys.stderr,
        )
        return BAD_INPUT
    except KeyboardInterrupt:
        print("ragbench: interrupted; finished parts are kept", file=sys.stderr)
        return INTERRUPTED


def entry() -> None:
    """The console script."""
    if "_ARGCOMPLETE" in os.environ:
        from ragbench import completion

        completion.answer()
    processes.end_on_signals()
    raise SystemExit(main())


def _overview() -> str:
    width = max(map(len, SUMMARY))
    lines = [f"  {name.ljust(width)}  {summary}" for name, summary in SUMMARY.items()]
    return "\n".join(
        [
            "usage: ragbench COMMAND [key=value ...] [options]",
            "",
            "Find out which retrieval ideas improve search over your markdown documentation.",
            "",
            *lines,
            "",
            "ragbench COMMAND --help explains a command with examples. First run: ragbench run +exp=baseline",
            "Exit codes: 0 done, 1 a check (data check, verify, gate) or an arm failed, 2 bad input or a missing part,",
            "130 interrupted.",
        ]
    )
