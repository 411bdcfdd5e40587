# PYTHON_ARGCOMPLETE_OK
"""The command line: find the sub-command, run it, turn errors into one sentence.

Exit codes: 0 done, 1 a check (verify, gate, data check) or an arm failed, 2 bad input or a missing part, 130
interrupted.
"""

from __future__ import annotations

import argparse
import gc
import io
import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import NoReturn

from ragbench.base import console, processes, registry
from ragbench.base.types import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    ArmsFailed,
    ConfigError,
    RagbenchError,
    did_you_mean,
    nearest,
    unusable,
)
from ragbench.boundary.permissions import trust
from ragbench.commands import GROUPS, SUMMARY, WORDS, Call, call, everything


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError with what is wrong and what may have been meant."""
        raise ConfigError(self._sentence(message))

    def _sentence(self, message: str) -> str:
        help_ = f"{self.prog} --help lists the arguments"
        if match := re.fullmatch(r"unrecognized arguments: (.*)", message, re.DOTALL):
            from ragbench.config.overrides import of_hydra

            value = (match[1].split() or ["''"])[0]
            if counterpart := of_hydra(value):
                return counterpart
            near = did_you_mean(value, re.findall(r"--[\w-]+", self.format_help()), "options")
            return f"{self.prog} does not accept {value[:60]}{near if value.startswith('-') else f': {help_}'}"
        if match := re.fullmatch(r"argument ([^:]*): invalid (int|float) value: (.*)", message, re.DOTALL):
            return f"{match[1]} must be a {'whole ' if match[2] == 'int' else ''}number, got {match[3][:60]}"
        if match := re.fullmatch(r"argument ([^:]*): invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL):
            near = did_you_mean(match[2], match[3].replace("'", "").split(", "))
            return f"{match[1]} cannot be '{match[2][:60]}'{near}"
        if match := re.fullmatch(r"the following arguments are required: (.*)", message):
            optional = [str(action.metavar) for action in self._actions if action.nargs in ("*", "?")]
            missing = [name for name in match[1].split(", ") if name not in optional]
            return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: {help_}"
        return f"{' '.join(message.split())[:200]}: {help_}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Small matrix products are slower on several threads, and far slower when another process wants the cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    options = argparse.Namespace(verbose=False)  # until those of the command are parsed
    typed = processes.TYPED.set(("ragbench", *words))
    try:
        for word in words:
            try:
                os.fsencode(word)
            except UnicodeEncodeError:
                return _refuse(f"the argument '{word[:60]}' is not valid text: type it again")
        if not words or words[0] in ("-h", "--help", "help"):
            print(_overview(), flush=True)
            return 0
        if words[0] == "--version":
            from importlib.metadata import version

            print(f"ragbench {version('ragbench')}")
            return 0
        called = call(words)
        if called is None:
            return _refuse(f"unknown command '{' '.join(words[0].split())[:60]}'{_suggestion(words[0])}")
        module = called.module
        options = _parser(called).parse_intermixed_args(called.rest)
        console.show_messages(logging.DEBUG if options.verbose else logging.INFO)
        if options.verbose:
            logging.basicConfig(level=logging.INFO)
        with trust() if options.trust else nullcontext(), console.guarding_terminals():
            return int(module.main(options))
    except SystemExit as stop:  # --help
        return int(stop.code or 0)
    except RagbenchError as error:
        if options.verbose:
            import traceback

            traceback.print_exc()
        return _refuse(str(error), FAILED if isinstance(error, ArmsFailed) else BAD_INPUT)
    except ModuleNotFoundError as error:
        if sentence := registry.missing_package(error):
            return _refuse(sentence)
        raise
    except BrokenPipeError:  # the reader of a pipe has gone (`ragbench list | head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter does not complain at exit
        return 0
    except OSError as error:
        if options.verbose:
            raise
        return _refuse(unusable(error))
    except KeyboardInterrupt as stop:
        return _refuse(str(stop) or "interrupted; finished parts are kept", INTERRUPTED)
    finally:
        processes.TYPED.reset(typed)


def _parser(called: Call) -> _Parser:
    """The parser of a command's arguments."""
    module = called.module
    parser = _Parser(
        prog=f"ragbench {called.name}",
        description=module.DESCRIPTION,
        epilog=module.EXAMPLES + _words_of(called.name),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    add_common(parser)
    return parser


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command takes."""
    parser.add_argument(
        "--verbose", "-v", action="store_true", help="print library logs, and the traceback of an error"
    )
    parser.add_argument(
        "--trust", action="store_true", help="let ragbench.yaml and bundles specify servers, programs and classes"
    )


def _refuse(sentence: str, code: int = BAD_INPUT) -> int:
    """Say why nothing was done; characters that would end or colour the line are shown as their codes."""
    signs = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in sentence)
    line = signs.encode(errors="backslashreplace").decode()
    print(f"ragbench: {line}", file=sys.stderr)
    return code


def _suggestion(command: str) -> str:
    if "=" in command or command.startswith("+"):
        return f"; did you mean ragbench run {' '.join(command.split())[:60]}?"
    alternatives = {name.split()[-1]: name for name in reversed(everything())}
    near = nearest(command, alternatives)
    if not near:
        return f"; the commands are {', '.join(SUMMARY)}"
    return f"; did you mean {' or '.join(alternatives[name] for name in near)}?"


def entry() -> None:
    """The console script."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may follow
        _complete(os.environ.get("COMP_LINE", "").split()[1:])
    os.environ.setdefault(*processes.SAFE_PATH)
    processes.install_signal_handlers()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # signs that the terminal cannot show must not end the command
    code = main()
    gc.freeze()  # a process that ends need not search its memory for what can be freed: 0.3 s
    raise SystemExit(code)


def _complete(words: Sequence[str]) -> None:
    """Let argcomplete answer for the words of a line and end the process; only the module of their command is read."""
    import argcomplete

    root = argparse.ArgumentParser(prog="ragbench")
    commands = root.add_subparsers()
    for name in SUMMARY:
        commands.add_parser(name)
    if words and words[0] in SUMMARY and (called := call(words)) is not None:
        parser = commands.choices[words[0]]
        if " " in called.name:
            parser = parser.add_subparsers().add_parser(called.name.split()[1])
        called.module.add_arguments(parser)
        add_common(parser)
        positional = next((action for action in parser._actions if not action.option_strings), None)
        if positional is not None and (below := WORDS.get(called.name)):
            offered = [*below, *(positional.choices or ())]
            positional.completer = lambda **_: offered  # type: ignore[attr-defined]  # argcomplete reads it
    argcomplete.autocomplete(root, always_complete_options=False)


def _aligned(lines: Mapping[str, str]) -> list[str]:
    width = max(map(len, (*SUMMARY, *lines)))
    return [f"  {name.ljust(width)}  {summary}" for name, summary in lines.items()]


def _words_of(command: str) -> str:
    """The sub-commands of a command, for its help."""
    words = WORDS.get(command, {})
    lines = ["sub-commands:", *_aligned(words), f"ragbench {command} SUBCOMMAND --help explains a sub-command", ""]
    return "\n".join(lines) if words else ""


def _overview() -> str:
    lines = [line for title, group in GROUPS.items() for line in ("", f"{title}:", *_aligned(group))]
    return "\n".join(
        [
            "usage: ragbench COMMAND [key=value ...] [options]",
            "",
            "Find out which retrieval ideas improve search over your markdown documentation.",
            *lines,
            "",
            "ragbench COMMAND --help explains a command with examples. To start: ragbench init FOLDER",
            "Exit codes: 0 done, 1 a check (data check, verify, gate) or an arm failed, 2 bad input or a missing part,",
            "3 gate is inconclusive (too few queries), 130 interrupted.",
        ]
    )
