"""The configuration, as `pkg://ragbench.conf` for Hydra."""
