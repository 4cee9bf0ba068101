"""What is computed when it is first asked for, and kept."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    kept_property = functools.cached_property
else:

    class kept_property(functools.cached_property):
        """A `cached_property` without a lock, as Python has it since 3.12: an analysis is the affair of one thread."""

        def __get__(self, instance, owner=None):
            """What the function has returned for this object, the first time."""
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
