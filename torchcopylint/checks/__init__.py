"""One rule, one function: from facts to reports.

A check may import `base` and `flow.facts` (with `flow.model`, whose words facts are made of) and `_common`, nothing
else: it never sees the syntax tree. Its page, `rules/<stem>.md`, is the home of its metadata and its words.
"""
