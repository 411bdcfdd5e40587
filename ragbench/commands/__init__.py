"""The sub-commands, one module each: `DESCRIPTION`, `EXAMPLES`, `add_arguments(parser)`, `main(arguments)`.

`SUMMARY` is what `ragbench --help` shows; a module is imported only when its command is called.
"""

SUMMARY = {
    "run": "measure one configuration, or a sweep of them, on a benchmark",
    "ablate": "run the arms of a design and judge every proposal",
    "tune": "search for better parameters on the training queries, confirm them once on the test queries",
    "compare": "compare finished runs, also of other systems",
    "report": "write a finished run as one HTML file that opens offline",
    "diagnose": "say at which stage relevant sections were lost",
    "search": "search the collection and see why each hit is there",
    "data": "check a benchmark, split it, compare two judges",
    "topics": "derive topics from the documents, and show which kinds are short",
    "pool": "write the unjudged pairs of runs as a table to fill",
    "judge": "grade a pool and merge the grades",
    "classify": "say what kind of query P3 takes a query for, and how often it is right",
    "vocabulary": "show the collection's terms nearest to a text (P1)",
    "calibrate": "fit isotonic calibration on the training queries",
    "learn-weights": "learn the weights of fusion on the training queries",
    "export": "write a measured configuration for another system, or as a bundle that runs elsewhere",
    "refresh": "take changed files into a bundle, and say how far they are from what was measured",
    "verify": "check on this machine that a bundle still does what was measured",
    "gate": "compare two runs and fail when the newer one is worse",
    "serve": "answer searches over HTTP from a bundle",
    "mcp": "answer searches of editors and agents over MCP from a bundle",
    "list": "show experiments, switches, parameters, data and models",
    "index": "build the index artefacts and inspect them",
    "config": "print the composed configuration and the pipeline as a sentence",
    "reference": "measure the presets and ablations into REFERENCE.md",
    "completion": "make the shell complete commands, options and overrides",
    "track": "write finished runs to MLflow from their folders",
    "ui": "open MLflow on the store the runs were written to",
    "doctor": "check Java, models, Lucene, FAISS, MLflow, disk",
}
