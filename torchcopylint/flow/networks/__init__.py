"""Modules: making them, calling them, and what they return."""
