"""Runtime verification: runs a slice of the user's code around a finding under torch and says what happened.

Nothing here imports torch but `verify.child`, which is a program of its own.
"""
