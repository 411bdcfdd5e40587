"""Measures of ragbench as metrics of `mlflow.evaluate` for tables of retrieved ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragbench.evaluation.measures import check, decreasing, evaluate, metric_name, own_name


def mlflow_metrics(measures: Sequence[Any] = ("nDCG@10", "nDCG@5", "RR", "R@100")) -> list[Any]:
    """Return metrics for `mlflow.models.evaluate(..., model_type="retriever", extra_metrics=...)`.

    Predictions are lists of ids, best first; targets are lists of relevant ids, or mappings from id to grade.

    Args:
        measures: Names of ir_measures, trec_eval or PyTerrier.

    Returns:
        A metric of MLflow per measure, with the values of ir_measures.

    Raises:
        ConfigError: A measure is unknown.

    Example:
        >>> import ragbench
        >>> len(ragbench.mlflow_metrics(["nDCG@10", "RR"]))
        2
    """
    from mlflow.metrics import make_metric

    names = list(map(own_name, measures))
    check(names)
    make: Any = make_metric
    return [make(eval_fn=_scorer(name), greater_is_better=True, name=metric_name(name)) for name in names]


def _scorer(measure: str) -> Any:
    def scores(predictions: Any, targets: Any, metrics: Any) -> Any:
        from mlflow.metrics import MetricValue

        qids = [str(number) for number in range(len(predictions))]
        ranked = [[(str(docno), 0.0) for docno in dict.fromkeys(hits)] for hits in predictions]
        run = {qid: decreasing(hits) for qid, hits in zip(qids, ranked, strict=True)}
        qrels = {qid: _grades(judged) for qid, judged in zip(qids, targets, strict=True)}
        frame = evaluate(run, qrels, [measure])
        known: dict[str, float] = dict(frame.loc[frame["measure"] == measure, ["qid", "value"]].itertuples(index=False))
        values = [float(known.get(qid, 0.0)) for qid in qids]
        return MetricValue(scores=values, aggregate_results={"mean": sum(values) / max(1, len(values))})

    return scores


def _grades(judged: Any) -> dict[str, int]:
    pairs = judged.items() if isinstance(judged, Mapping) else ((each, 1) for each in judged)
    return {str(docno): int(grade) for docno, grade in pairs}
