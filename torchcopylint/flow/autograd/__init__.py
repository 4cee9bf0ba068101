"""Leaves, graphs and gradients over time, and what torch refuses."""
