"""The machine that runs a tape, and the register of functions that mean something of their own."""
