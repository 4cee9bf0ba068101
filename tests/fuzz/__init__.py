"""Programs that nobody wrote, and what holds for each."""
