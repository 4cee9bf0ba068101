"""One file as a whole, and what others may know of it."""
