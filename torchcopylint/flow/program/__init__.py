"""What the classes and functions of a file say by themselves: who owns, keeps, ties or consumes what."""
