"""`python -m torchcopylint.knowledge.generate [--check]`: writes the knowledge tables, or says which are stale."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from torchcopylint.knowledge import table
from torchcopylint.knowledge.generate import arrays, document, modules, names, operations

_ABOUT = {
    "tensor.md": f"Every public method and property of `torch.Tensor`, and the special methods.\n\n{document.LEGEND}",
    "functions.md": f"The functions of torch that deal in tensors, by namespace.\n\n{document.LEGEND}",
    "modules.md": f"Every module class of `torch.nn`.\n\n{modules.LEGEND}",
    "numpy.md": "The methods of `numpy.ndarray` and the functions of numpy that deal in arrays. Arrays have no\n"
    f"version counter and no graph; `view` means that memory is shared.\n\n{document.LEGEND}",
    "names.md": names.LEGEND,
    "owners.md": names.OWNERS_LEGEND,
}


def generate() -> dict[str, str]:
    """The text of every generated file, by file name. Raises `NoRow` for an operation that no recipe can call."""
    skipped = frozenset(table.names("overlay"))
    evidence = names.evidence()
    tensors = {name for name, kind in evidence.items() if kind == "tensor"}
    tables = {
        "tensor.md": ("What tensors do", operations.tensor_sections(skipped, tensors), document.COLUMNS),
        "functions.md": ("What functions do", operations.function_sections(skipped), document.COLUMNS),
        "modules.md": ("What modules do", modules.module_sections(skipped), modules.COLUMNS),
        "numpy.md": ("What numpy does", arrays.array_sections(skipped), document.COLUMNS),
        "names.md": ("Names that are evidence", names.name_sections(), names.COLUMNS),
        "owners.md": ("Who has methods of tensors", names.owner_sections(), names.OWNER_COLUMNS),
    }
    return {
        file: document.document(title, _ABOUT[file], sections, columns)
        for file, (title, sections, columns) in tables.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 1 if `--check` found a file that differs from what the installed torch and numpy show."""
    parser = argparse.ArgumentParser(prog=document.COMMAND, description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is stale")
    check = parser.parse_args(arguments).check
    texts = generate()
    if not check:
        document.write(texts)
        return 0
    stale = document.stale(texts)
    for name, difference in stale.items():
        print(f"{name} is stale: run {document.COMMAND}\n{difference}", end="", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
