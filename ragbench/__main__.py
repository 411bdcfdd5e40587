"""`python -m ragbench`."""

from ragbench.cli import entry

if __name__ == "__main__":
    entry()
