"""Features and training that could order the first ten documents better, each with every site held out in turn.

    python -m research.first_ten sites.yaml exp=recommended ranker=off --work FOLDER --sheet SHEET [--only TRIAL ...]

sites.yaml is that of `research.shared_ranker`. Each trial changes the features or the training of the shared ranker;
the sheet has its gain over the ranker without the change on the questions, with links hidden, and on questions of
which no best page has a link from another. --work keeps the outcomes of trials.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ragbench.base.console import markdown
from ragbench.base.files import write_text
from ragbench.base.fingerprint import digest
from ragbench.base.types import BAD_INPUT, ConfigError, RagbenchError, with_interval
from ragbench.config.benchmark import load
from ragbench.config.composition import compose
from ragbench.extras.fit import ranker, training
from ragbench.extras.fit.ranker import Sample
from ragbench.extras.fit.training import Numbers, Values
from research import candidate_features, ltr_multi
from research.candidate_features import SOURCES, Site
from research.ltr_multi import SPEC, Collection, Part

QUESTIONS = "questions"
_AGREEING = "margins/agreeing"
_CONFIDENCE = 0.95
_SEED = 13
_DRAWS = 10_000
_PER_KIND = {"derived topics": "derived", "known items": "known"}


@dataclass(frozen=True)
class Trial:
    """A change of the shared ranker.

    `groups` of `candidate_features` are read as well; a name with `/` is a single feature with its relative forms.
    `without` are prefixes of features that are not read. `parameters` are those of LightGBM, `rising` features whose
    value may only raise the score, `hidden` is the share of the weight of copies with links hidden, in training, and
    `agreed` the weight of the trees for questions of which all retrievers put the same page first.
    """

    groups: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rising: tuple[str, ...] = ()
    hidden: float = 0.0
    agreed: float = 1.0
    rounds: int = SPEC.rounds
    models: int = ltr_multi.MODELS
    prior: float = SPEC.prior
    seed: int = SPEC.seed


A = ("section", "rare", "passage", "agree", "kind", "copies")
B = ("margins", "lead", "agreement")
CONTROL = "control"
NOISE = {f"seeds from {seed}": Trial(seed=seed) for seed in (113, 213, 313)}
"""Nothing but other seeds."""
TRIALS = {
    **{f"+ {group}": Trial((group,)) for group in candidate_features.ABOUT},
    "+ all of (a)": Trial(A),
    "+ all of (b)": Trial(B),
    "+ all of (a) and (b)": Trial((*A, *B)),
    "+ all": Trial(tuple(candidate_features.ABOUT)),
    "rank_xendcg": Trial(parameters={"objective": "rank_xendcg"}),
    "truncation 30": Trial(parameters={"lambdarank_truncation_level": 30}),
    "monotone": Trial(
        rising=("cover.", "fused.score.", "dense.score.", "lexical.score.", "documents.score.", "document.share")
    ),
    "half of training with links hidden": Trial(hidden=0.5),
    "+ all, half of training with links hidden": Trial(tuple(candidate_features.ABOUT), hidden=0.5),
    "trees halved where retrievers agree": Trial(agreed=0.5),
    "no trees where retrievers agree": Trial(agreed=0.0),
    "8 models": Trial(models=8),
    "160 rounds": Trial(rounds=160),
    "40 rounds": Trial(rounds=40),
    "prior 2": Trial(prior=2.0),
    "prior 5": Trial(prior=5.0),
    # Chosen after the results of the others on eleven sites.
    **{f"+ votes/{name}": Trial((f"votes/{name}",)) for name in ("folder", "lead", "page", "top")},
    "+ votes and cosines": Trial(("votes", "cosines")),
    "+ votes, cosines and passage": Trial(("votes", "cosines", "passage")),
    "+ votes, 8 models": Trial(("votes",), models=8),
    "+ cross, votes, cosines and passage": Trial(("cross", "votes", "cosines", "passage")),
    "+ cross, links hidden in half of training": Trial(("cross",), hidden=0.5),
}


@dataclass(frozen=True)
class Questions:
    """All queries of the collections, those of a part after those of another, and what trials compare."""

    parts: tuple[Part, ...]
    unlinked: tuple[Numbers, ...]

    @cached_property
    def sample(self) -> Sample:
        """The queries of all parts."""
        return ltr_multi._joined([part.sample for part in self.parts])

    @cached_property
    def blind(self) -> Sample:
        """The same with links hidden."""
        sample = ltr_multi.without_links(self.sample)
        places = [place for place, name in enumerate(sample.features) if candidate_features.of_links(name)]
        neutral = [0.5 if sample.features[place].endswith(".percentile") else 0.0 for place in places]

        def hide(rows: Values) -> Values:
            rows = rows.copy()
            rows[:, places] = neutral
            return rows

        return replace(sample, rows=tuple(hide(rows) for rows in sample.rows))

    def by_query(self, name: str) -> np.ndarray:
        """A value of each query's collection."""
        return np.concatenate([[getattr(part.collection, name)] * len(part.sample) for part in self.parts])

    @cached_property
    def sites(self) -> np.ndarray:
        """The site of each query."""
        return self.by_query("site_name")

    @cached_property
    def asked(self) -> np.ndarray:
        """Whether each query is a question of a user."""
        return self.by_query("kind") == QUESTIONS

    @cached_property
    def agreed(self) -> np.ndarray:
        """Whether all retrievers of each query put the same page first."""
        sample = self.sample
        if _AGREEING not in sample.features:
            return np.zeros(len(sample), dtype=bool)
        return np.array([rows[0, sample.features.index(_AGREEING)] == len(SOURCES) - 2 for rows in sample.rows])

    @cached_property
    def without_link(self) -> np.ndarray:
        """Whether each query is a question of which no best page has a link from another page."""
        return self.asked & np.concatenate(self.unlinked).astype(bool)


def collect(collection: Collection, overrides: Sequence[str]) -> tuple[Part, Numbers]:
    """The queries of a collection with the features of the ranker and the new ones."""
    settings = compose([*overrides, *collection.words])
    benchmark = load(settings.config)
    arm = ranker.arm(settings, benchmark)
    states = training.answers(arm, benchmark.select(collection.split))
    arm.index.prepare({"dense"})
    judged = ranker.sample(states, arm.index, benchmark, SPEC.depth, ltr_multi.comparable)
    site = Site(arm.index, arm.index.models.cross_encoder(candidate_features.CROSS_ENCODER))
    by_qid = {state.query.qid: state for state in states}
    tables = [candidate_features.table(by_qid[qid], site, SPEC.depth) for qid in judged.qids]
    names = tuple(tables[0])
    rows = [
        np.column_stack([old, *(new[name] for name in names)]) for old, new in zip(judged.rows, tables, strict=True)
    ]
    linked, numbers = site.terms.standing[3] > 0, site.table.document_number
    unlinked = []
    for qid in judged.qids:
        grades = benchmark.document_qrels[qid]
        best = [docno for docno, grade in grades.items() if grade == max(grades.values())]
        unlinked.append(not any(linked[numbers[docno]] for docno in best if docno in numbers))
    arm.index.close()
    part = Part(
        collection,
        replace(judged, features=judged.features + names, rows=tuple(rows)),
        len(benchmark.documents),
        benchmark.digest,
    )
    return part, np.array(unlinked)


@dataclass(frozen=True)
class Outcome:
    """nDCG@10 of every query with the model of the other sites, and with links hidden from it."""

    values: Values
    hidden: Values


def run(questions: Questions, trial: Trial) -> Outcome:
    """Train without each site in turn."""
    names = _columns(questions.sample.features, trial)
    sample, blind = (of.reading(names) for of in (questions.sample, questions.blind))
    weights, sites = questions.by_query("weight").astype(float), questions.sites
    values, hidden = np.zeros((2, len(sample)))
    for site in sorted(set(sites.tolist())):
        held, chosen = (sites == site).nonzero()[0].tolist(), (sites != site).nonzero()[0].tolist()
        boosters = _train(sample, blind, chosen, weights, trial)
        for rows_of, out in ((sample.rows, values), (blind.rows, hidden)):
            rows = np.concatenate([rows_of[i] for i in held])
            scores = np.mean([booster.predict(rows, num_threads=1) for booster in boosters], axis=0)
            ends = np.cumsum([len(rows_of[i]) for i in held])[:-1]
            for i, of_query in zip(held, np.split(scores, ends), strict=True):
                weight = trial.agreed if questions.agreed[i] else 1.0
                out[i] = sample.value(i, trial.prior * sample.norms[i] + weight * of_query)
    return Outcome(values, hidden)


def _columns(features: Sequence[str], trial: Trial) -> tuple[str, ...]:
    """The features that a trial reads."""
    absolute = {name: name.removesuffix(".percentile").removesuffix(".gap") for name in features}
    old = (name for name in features if "/" not in name and not name.startswith(trial.without or ("/",)))
    new = (name for name in features if "/" in name and {name.partition("/")[0], absolute[name]} & {*trial.groups})
    return (*old, *new)


def _train(sample: Sample, blind: Sample, chosen: Sequence[int], weights: Values, trial: Trial) -> list[Any]:
    """One booster for each seed."""
    import lightgbm

    copies = [(sample, 1 - trial.hidden), *([(blind, trial.hidden)] if trial.hidden else [])]
    sizes = np.array([len(sample.rows[i]) for i in chosen])
    spec = replace(SPEC, rounds=trial.rounds, seed=trial.seed)
    parameters = ranker._parameters(sample, spec) | trial.parameters
    if trial.rising:
        parameters["monotone_constraints"] = [
            int(name.startswith(trial.rising) and not name.endswith(".rank")) for name in sample.features
        ]
    data = lightgbm.Dataset(
        np.concatenate([of.rows[i] for of, _ in copies for i in chosen]),
        np.concatenate([of.grades[i] for of, _ in copies for i in chosen]),
        group=np.tile(sizes, len(copies)),
        weight=np.concatenate([share * weights[chosen].repeat(sizes) for _, share in copies]),
        init_score=trial.prior * np.concatenate([of.norms[i] for of, _ in copies for i in chosen]),
        params={"max_bin": 63, "verbosity": -1, "num_threads": 1, "data_random_seed": trial.seed},
        free_raw_data=False,
    )
    return [
        lightgbm.train(parameters | {"seed": trial.seed + number}, data, trial.rounds) for number in range(trial.models)
    ]


def change(
    questions: Questions, difference: Values, of: np.ndarray, confidence: float = _CONFIDENCE
) -> tuple[float, float, float]:
    """The mean of a difference over some queries, and its interval where whole sites are resampled."""
    _, site = np.unique(questions.sites[of], return_inverse=True)
    counts = np.bincount(site).astype(float)
    half = ltr_multi.half_width(np.bincount(site, difference[of]), counts, _SEED, _DRAWS, confidence)
    mean = float(difference[of].mean())
    return mean, mean - half, mean + half


def by_other_sites(questions: Questions, outcomes: Mapping[str, Outcome]) -> Values:
    """nDCG@10 of every question by the trial that is best on the questions of all other sites."""
    table = np.array([outcome.values for outcome in outcomes.values()])
    chosen = np.zeros(table.shape[1])
    for site in np.unique(questions.sites):
        held = questions.sites == site
        best = table[:, questions.asked & ~held].mean(axis=1).argmax()
        chosen[held] = table[best, held]
    return chosen


def sheet(questions: Questions, outcomes: Mapping[str, Outcome]) -> str:
    """The tables of all trials against the control."""
    import pandas as pd

    control = outcomes[CONTROL]
    trials = {name: outcome for name, outcome in outcomes.items() if name in TRIALS}
    level = 1 - (1 - _CONFIDENCE) / max(len(trials), 1)
    rows = []
    for name, outcome in outcomes.items():
        if name == CONTROL:
            continue
        difference = outcome.values - control.values
        sites = np.unique(questions.sites[questions.asked])
        by_site = [difference[questions.asked & (questions.sites == site)].mean() for site in sites]
        mean, low, high = change(questions, difference, questions.asked)
        of_all = change(questions, difference, questions.asked, level)
        rows.append(
            {
                "trial": name,
                "nDCG@10": f"{outcome.values[questions.asked].mean():.3f}",
                "gain": with_interval(mean, low, high, 4),
                "of all trials": f"[{of_all[1]:+.4f}, {of_all[2]:+.4f}]",
                "links hidden": with_interval(*change(questions, outcome.hidden - control.hidden, questions.asked), 4),
                "unlinked answers": with_interval(*change(questions, difference, questions.without_link), 4),
                **{
                    label: f"{difference[questions.by_query('kind') == kind].mean():+.4f}"
                    for kind, label in _PER_KIND.items()
                    if (questions.by_query("kind") == kind).any()
                },
                "sites up": f"{sum(value > 0 for value in by_site)} of {len(by_site)}",
                "worst site": f"{min(by_site):+.3f}",
            }
        )
    asked, alone, fused = questions.asked, questions.without_link, questions.sample.fused
    starts = [("without ranker", fused, fused), (CONTROL, control.values, control.hidden)]
    gains = [(control.values - fused, asked), (control.hidden - fused, asked), (control.values - fused, alone)]
    mean, low, high = change(questions, by_other_sites(questions, {CONTROL: control, **trials}) - control.values, asked)
    return "\n".join(
        [
            f"{asked.sum()} questions, {alone.sum()} of them with unlinked answers, {len(trials)} trials.",
            "",
            "| | questions | links hidden | unlinked answers |",
            "| --- | ---: | ---: | ---: |",
            *(
                f"| {name} | {of[asked].mean():.3f} | {hidden[asked].mean():.3f} | {of[alone].mean():.3f} |"
                for name, of, hidden in starts
            ),
            f"| gain of {CONTROL} | " + " | ".join(with_interval(*change(questions, *of), 4) for of in gains) + " |",
            "",
            markdown(pd.DataFrame(rows)),
            "",
            f"Chosen for each site by the others: {with_interval(mean, low, high, 4)}.",
            "",
        ]
    )


def main(given: list[str] | None = None) -> int:
    """Run the trials and write the sheet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, metavar="FILE", help="YAML list of judged collections")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    parser.add_argument("--work", type=Path, default=Path("results/first_ten"), metavar="FOLDER")
    parser.add_argument("--sheet", type=Path, required=True, metavar="FILE", help="the tables in markdown")
    parser.add_argument("--only", nargs="*", default=None, metavar="TRIAL", help=f"of: {', '.join(TRIALS)}")
    arguments = parser.parse_intermixed_args(given)
    try:
        chosen = {**NOISE, **TRIALS}
        if unknown := {*(arguments.only or ())} - {*chosen}:
            raise ConfigError(f"--only has no trial '{min(unknown)}': choose among {', '.join(chosen)}")
        collections = ltr_multi.read(arguments.collections)
        collected = [collect(one, arguments.overrides) for one in collections]
        questions = Questions(*(tuple(column) for column in zip(*collected, strict=True)))
        outcomes = {}
        for name in (CONTROL, *(chosen if arguments.only is None else arguments.only)):
            outcomes[name] = _kept(questions, name, {CONTROL: Trial(), **chosen}[name], arguments.work)
            print(name, round(float(outcomes[name].values[questions.asked].mean()), 4), flush=True)
        write_text(arguments.sheet, sheet(questions, outcomes))
    except RagbenchError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    return 0


def _kept(questions: Questions, name: str, trial: Trial, folder: Path) -> Outcome:
    """The outcome of a trial, kept in `folder` under the digest of the trial and of the data that it belongs to."""
    about = [repr(trial), [part.digest for part in questions.parts], questions.sample.features]
    file = folder / f"{name.replace('/', '-')}-{digest(about)[:12]}.npz"
    if file.exists():
        with np.load(file, allow_pickle=False) as kept:
            return Outcome(kept["values"], kept["hidden"])
    outcome = run(questions, trial)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(file, values=outcome.values, hidden=outcome.hidden)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
