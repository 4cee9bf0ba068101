"""What torch, numpy and copy operations do to memory and to the graph, as tables; `table` looks things up in them."""
