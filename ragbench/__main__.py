"""`python -m ragbench`."""

from ragbench.commands.cli import entry

if __name__ == "__main__":
    entry()
