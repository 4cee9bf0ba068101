"""From paths and configuration to the results of a run."""
