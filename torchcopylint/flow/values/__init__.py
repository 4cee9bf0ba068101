"""What is known of values, and how the user calls them: kinds, dtypes, devices, names, and the state at one point."""
