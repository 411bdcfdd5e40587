"""The measures of ragbench as metrics of `mlflow.models.evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragbench.evaluation import measures


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
    return [_metric(name) for name in _own_names(measures)]


def _own_names(named: Sequence[Any]) -> list[str]:
    """The names of measures as ir_measures writes them. ConfigError for an unknown one."""
    names = list(map(measures.own_name, named))
    measures.check(names)
    return names


def _metric(measure: str) -> Any:
    from mlflow.metrics import make_metric

    make: Any = make_metric
    return make(eval_fn=_scorer(measure), greater_is_better=True, name=metric_name(measure))


def _scorer(measure: str) -> Any:
    def scores(predictions: Any, targets: Any, metrics: Any) -> Any:
        from mlflow.metrics import MetricValue

        qids = [str(number) for number in range(len(predictions))]
        ranked = [[(str(docno), 0.0) for docno in dict.fromkeys(hits)] for hits in predictions]
        run = {qid: measures.decreasing(hits) for qid, hits in zip(qids, ranked, strict=True)}
        qrels = {qid: _grades(judged) for qid, judged in zip(qids, targets, strict=True)}
        frame = measures.evaluate(run, qrels, [measure])
        by_qid: dict[str, float] = dict(
            frame.loc[frame["measure"] == measure, ["qid", "value"]].itertuples(index=False)
        )
        values = [float(by_qid.get(qid, 0.0)) for qid in qids]
        return MetricValue(scores=values, aggregate_results={"mean": sum(values) / max(1, len(values))})

    return scores


def _grades(judged: Any) -> dict[str, int]:
    pairs = judged.items() if isinstance(judged, Mapping) else ((docno, 1) for docno in judged)
    return {str(docno): int(grade) for docno, grade in pairs}


_FIELD_NAMES = {"rr": "mrr", "r": "recall", "p": "precision", "ap": "map"}
"""The field's name of a measure, where ir_measures has another name for it."""


def metric_name(measure: str) -> str:
    """The usual name of a measure's mean, as MLflow accepts it: `ndcg_at_10`, `recall_at_100`, `mrr`."""
    plain = measure.lower().replace("@", "_at_").replace("(", "_").replace(")", "").replace("=", "_").replace(",", "_")
    name, at, cutoff = plain.partition("_at_")
    return f"{_FIELD_NAMES.get(name, name)}{at}{cutoff}"
