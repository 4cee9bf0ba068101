"""Executes the examples of the rule pages under torch and writes down what they did."""
