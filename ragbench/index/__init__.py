"""Index artefacts: what search reads."""
