"""Syntax tree to tape. The only code of the analysis that sees LibCST's nodes."""

from torchcopylint.flow.lower.module import Lowered, lower

__all__ = ["Lowered", "lower"]
