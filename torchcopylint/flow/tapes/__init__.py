"""What the tape of a unit says by itself: uses, loops, turns, conditions."""
