"""From bytes to a syntax tree: decoding, limits, comments, positions. Opens no files."""
