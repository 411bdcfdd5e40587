"""Research programs are tested with the fixtures and the surroundings of `tests`."""

from tests.conftest import *  # noqa: F403 -- as hooks and fixtures of these tests, wherever those of `tests` run
