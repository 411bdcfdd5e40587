"""Arms with equal specifications share an index, all arms share models."""

from pathlib import Path

from ragbench.base import console
from ragbench.config import composition
from ragbench.config.settings import ArmBuilder


def test_arm_builder_shares_an_index_of_equal_specifications(workplace: Path, benchmark_small) -> None:
    words = [f"paths.results={workplace}", "p4=off,on", "index.lexical.analyzer=english,standard"]
    settings = composition.sweep(words)
    builder = ArmBuilder.of(settings[0], benchmark_small)
    arms = builder.arms(settings)
    assert [arm.name for arm in arms] == [setting.name for setting in settings]
    analyzers = [setting.index.lexical.analyzer for setting in settings]
    for arm, analyzer in zip(arms, analyzers, strict=True):
        assert (arm.index is arms[0].index) == (analyzer == analyzers[0])  # weights of fields act when searching
        assert arm.index.models is builder.models
    assert len({id(arm.index) for arm in arms}) == 2


def test_arm_builder_shares_readers_of_common_artefacts(workplace: Path, benchmark_small) -> None:
    settings = composition.sweep(
        [f"paths.results={workplace}", "index.lexical.analyzer=english,standard", "dense=null"]
    )
    one, other = ArmBuilder.of(settings[0], benchmark_small).arms(settings)
    assert one.index is not other.index
    assert one.index.chunks is other.index.chunks
    assert one.index.graph is other.index.graph
    assert one.index.lexical is not other.index.lexical


def test_arm_builder_builds_in_the_folder_of_the_settings(workplace: Path, benchmark_small, tmp_path: Path) -> None:
    progress: list[tuple[str, int, int]] = []
    settings = composition.compose([f"paths.results={workplace}", f"paths.index={tmp_path}", "dense=null"])
    builder = ArmBuilder.of(settings, benchmark_small)
    (arm,) = builder.arms([settings])
    assert list(tmp_path.iterdir()) == []
    with console.progress_to(lambda *step: progress.append(step)):
        arm.index.prepare(arm.pipeline.needs)
    assert {path.name for path in tmp_path.iterdir()} == {"chunks", "lexical"}
    assert {task for task, _, _ in progress} == {"chunking", "indexing terms"}
    assert builder.models.cache == settings.cache_folder
