"""`ragbench completion`."""

from __future__ import annotations

import argparse

DESCRIPTION = "Print the lines that make a shell complete commands, options, experiments and keys."
EXAMPLES = """examples:
  source <(ragbench completion bash)        in this shell; put the line into ~/.bashrc to keep it
  source <(ragbench completion zsh)         the same for zsh, after compinit
  ragbench completion fish | source
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which shell."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell that you use")


def main(arguments: argparse.Namespace) -> int:
    """Print the shell's code."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["ragbench"], shell=arguments.shell))
    return 0
