"""Changes of programs whose effect under torch is known, to ask the linter the same question in other words."""
