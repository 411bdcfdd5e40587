"""The steps of a pipeline, one module each: what `ragbench.search.stages.stage` describes."""
