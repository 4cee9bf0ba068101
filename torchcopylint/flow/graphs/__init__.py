"""What hangs on which graph, and what backward runs over, as tapes say."""
