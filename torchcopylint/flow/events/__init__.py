"""What the events of a tape mean: one module for each kind, each of which registers its handlers."""
