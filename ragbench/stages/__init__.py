"""The steps of a pipeline, one module each: what `ragbench.stages.stage` describes."""
