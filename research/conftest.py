"""Research programs are tested with the fixtures of `tests`."""

pytest_plugins = ["tests.conftest"]
