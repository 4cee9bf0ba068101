"""What crosses the border of a function: classes and fields, parameters, summaries, what is handed and returned."""
