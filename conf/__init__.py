"""The configuration, in an installed wheel `pkg://ragbench.conf` for Hydra."""
