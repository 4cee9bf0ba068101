"""From a syntax tree and the knowledge of torch to facts. No input or output; never raises on user code."""
