"""The small runs of the tests of the report."""

from tests.extras.report.conftest import ablation, alone, around, comparison, hostile  # noqa: F401 -- fixtures
