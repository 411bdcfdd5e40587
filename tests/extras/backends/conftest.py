"""The models of the tests of models."""

from tests.models.conftest import *  # noqa: F403 -- fixtures
