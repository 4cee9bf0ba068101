"""Where a variant's findings are not the original's, each with its reason. The tests assert every entry exactly."""

from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    """Findings of the original program that a variant lacks, and findings of the variant that the original lacks."""

    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


class Entry(NamedTuple):
    """A difference of one program under some transformations, and the reason for it."""

    program: str
    transformations: tuple[str, ...]
    difference: Difference
    why: str


_IN_FUNCTIONS = (
    "function",
    "method",
    "function in a function",
    "all in a function",
)
KNOWN: tuple[Entry, ...] = (
    Entry(
        "state-dict-by-reference bad 1",
        ("loop of one turn",),
        Difference(missing=("TCL701@15 error/high",)),
        "a loop around the training loop (folds, runs, seeds) hides the snapshot that the inner loop takes",
    ),
    Entry(
        "detach-shares-memory bad 3",
        ("loop of one turn",),
        Difference(missing=("TCL303@8 error/high",)),
        "as above: what an inner loop writes through is lost where an outer loop surrounds it",
    ),
    Entry(
        "data-write-corrupts-gradient bad 4",
        ("conditional expression",),
        Difference(missing=("TCL101@10 error/high",), extra=("TCL103@10 warning/high",)),
        "in a loop, a loss that one branch of a conditional expression makes is no longer one that backward needs",
    ),
    *(
        Entry(
            program,
            ("variables as attributes of self",),
            Difference(missing=(finding,)),
            "sharing between two attributes of `self` is followed between methods at most, not inside one",
        )
        for program, finding in (
            ("detach-shares-memory bad 1", "TCL303@6 error/high"),
            ("from-numpy-mutated bad 1", "TCL401@6 error/high"),
            ("from-numpy-mutated bad 4", "TCL401@6 error/high"),
            ("numpy-view-mutated bad 3", "TCL402@6 error/high"),
            ("view-mutated bad 1", "TCL501@5 error/high"),
        )
    ),
    Entry(
        "graph-accumulated bad 3",
        ("conditional expression", "through a second name", "unpacked from a tuple"),
        Difference(missing=("TCL304@19 warning/medium",)),
        "`error = error + x` is a sum only if the name is bound to the addition itself",
    ),
    Entry(
        "graph-accumulated bad 4",
        (*_IN_FUNCTIONS, "variables as attributes of self"),
        Difference(missing=("TCL304@17 warning/high",)),
        "a function in a function is run after the code that calls it, which does not know then what it returns",
    ),
    *(
        Entry(
            program,
            ("variables as attributes of self",),
            Difference(missing=(finding,)),
            "a loss that is kept in an attribute may be somebody else's to run backward over",
        )
        for program, finding in (
            ("retain-graph-in-loop bad 1", "TCL311[carried]@8 warning/high"),
            ("retain-graph-in-loop bad 3", "TCL311@10 warning/medium"),
        )
    ),
    Entry(
        "tensor-shallow-copied good 4",
        ("copy left out in row 5, column 9",),
        Difference(missing=("any finding",)),
        "a second name of a tensor is written, and the first is read as a text only, of what `sum()` and `item()` give",
    ),
    Entry(
        "tensor-shallow-copied good 5",
        ("copy left out in row 6, column 8",),
        Difference(missing=("any finding",)),
        "as above, by `tolist()`",
    ),
    *(
        Entry(
            f"deepcopy-of-nonleaf bad {number}",
            ("try except",),
            Difference(missing=("TCL309@8 error/medium",)),
            "a deep copy in a `try` counts as made for its exception: there is code that copies otherwise then",
        )
        for number in (1, 3)
    ),
    Entry(
        "grad-data good 6",
        ("variables as attributes of self",),
        Difference(extra=("TCL105@16 info/medium",)),
        "a false alarm: inside a lambda, `self.recorder` is no longer known to be an object of the program's own class",
    ),
    Entry(
        "result-discarded good 7",
        ("every member imported",),
        Difference(extra=("TCL602@12 error/high",)),
        "a false alarm: `suppress` is known as `contextlib.suppress` only, not imported by itself",
    ),
    Entry(
        "requires-grad-attribute good 7",
        ("variables renamed",),
        Difference(extra=("TCL606@7 error/medium",)),
        "a false alarm: a `SimpleNamespace` whose `requires_grad` is read counts as a tensor unless its name hides it",
    ),
    Entry(
        "data-assign-shares-storage bad 4",
        ("all in a function",),
        Difference(missing=("TCL102@9 error/high",), extra=("TCL104@9 warning/high",)),
        "a class in a function does not see the imports of that function",
    ),
    Entry(
        "inplace-on-leaf bad 2",
        _IN_FUNCTIONS,
        Difference(missing=("TCL201@7 error/medium",), extra=("TCL201@7 error/low",)),
        "what a caller passes counts less where the caller is a function: the finding is no longer shown by default",
    ),
    Entry(
        "inplace-on-leaf bad 3",
        (*_IN_FUNCTIONS, "variables as attributes of self"),
        Difference(missing=("TCL201@11 error/high",), extra=("TCL201@11 error/medium",)),
        "a call in the script proves that grad mode is on; the same call in a function that the script calls does not",
    ),
    Entry(
        "detach-inplace-assigned bad 2",
        ("unpacked from a tuple",),
        Difference(missing=("TCL301@9 error/high",)),
        "the result of `detach_()` is not seen to be bound where it is unpacked from a tuple",
    ),
    Entry(
        "detach-inplace-assigned bad 4",
        ("unpacked from a tuple",),
        Difference(missing=("TCL301[bound]@7 warning/high",)),
        "as above",
    ),
    *(
        Entry(
            program,
            ("try except",),
            Difference(missing=missing),
            "a call inside any `try` with a handler counts as made for its exception, whatever the handler catches",
        )
        for program, missing in (
            (
                "result-discarded bad 1",
                ("TCL602@4 error/high", "TCL602@5 error/high", "TCL602@6 error/high"),
            ),
            ("result-discarded bad 2", ("TCL602@5 error/high", "TCL602@6 error/high")),
            ("result-discarded bad 4", ("TCL602@11 error/high",)),
        )
    ),
    *(
        Entry(
            program,
            ("semicolons",),
            Difference(missing=(finding,)),
            "of several statements on one line, only one gets a finding of a rule that speaks once a statement",
        )
        for program, finding in (
            ("data-write bad 5", "TCL103[idiom] in statement 5 info/high"),
            ("data-read bad 2", "TCL104 in statement 12 warning/high"),
            ("loss-data-index good 5", "TCL104 in statement 6 warning/high"),
        )
    ),
    Entry(
        "detach-shares-memory bad 4",
        ("write moved back",),
        Difference(missing=("TCL303",)),
        "the weight of a module is overwritten at the end of a method and read by the next call of another one",
    ),
    Entry(
        "state-dict-by-reference good 10",
        ("copy left out in row 16, column 15",),
        Difference(missing=("any finding",)),
        "an own `state_dict` that returns what `super().state_dict()` returns is not seen to share",
    ),
)
"""Where the linter is wrong. Whoever puts one right removes it here."""

HINTS: tuple[Entry, ...] = (
    Entry(
        "data-assign-shares-storage good 9",
        ("variables renamed",),
        Difference(
            missing=("TCL103[idiom]@6 info/medium", "TCL103[idiom]@8 info/high"),
            extra=("TCL103[assign]@6 warning/medium", "TCL103[assign]@8 warning/high"),
        ),
        "that the conversion of weights is a legitimate use is told by the function's name, `convert_checkpoint`",
    ),
    Entry(
        "data-write bad 5",
        ("variables renamed",),
        Difference(
            missing=("TCL103[idiom]@7 info/high", "TCL103[idiom]@8 info/high"),
            extra=("TCL103@7 warning/high", "TCL103@8 warning/high"),
        ),
        "that an initialiser is one is told by the function's name, `init_weights`",
    ),
)
"""Where a finding legitimately rests on a name."""

BY_DESIGN: tuple[Entry, ...] = (
    Entry(
        "detach-inplace-assigned good 8",
        ("through a second name", "conditional expression"),
        Difference(extra=("TCL301[bound]@9 warning/high",)),
        "`prior = prior.detach_()` is the idiom; with the result under a second name it is the hazard of the page",
    ),
    Entry(
        "repeated-module bad 3",
        ("copied at every share",),
        Difference(missing=("TCL706@9 error/high",)),
        "torch cannot tell by the output: copies of one head start from equal weights and agree just as one head does",
    ),
    Entry(
        "data-assign-shares-storage bad 1",
        ("copied at 7:21",),
        Difference(missing=("TCL102@7 error/high",)),
        "torch cannot tell by the output: the other parameter still moves the target",
    ),
    Entry(
        "data-assign-shares-storage bad 1",
        ("copied at 8:19",),
        Difference(missing=("TCL102@8 error/high",)),
        "as above",
    ),
    Entry(
        "numpy-view-mutated bad 2",
        ("write moved back",),
        Difference(extra=("TCL402[caller]@7 warning/high",)),
        "the caller's module is written all the same, which this program does not look at",
    ),
    Entry(
        "data-write-corrupts-gradient bad 4",
        ("write moved back",),
        Difference(missing=("TCL101",)),
        "the gradient is right; that torch prints something else without the write is due to the loop's next turn",
    ),
    *(
        Entry(
            f"deepcopy-of-nonleaf bad {number}",
            (f"copy left out in row 8, column {column}",),
            Difference(missing=("any finding",)),
            "without the copy, which raises, the program is right",
        )
        for number, column in ((1, 7), (2, 11), (3, 7))
    ),
    Entry(
        "data-read good 9",
        ("copy left out in row 5, column 7",),
        Difference(missing=("any finding",)),
        "the program prints whether two tensors share memory, and writes to none of them",
    ),
    Entry(
        "view-mutated good 6",
        ("copy left out in row 5, column 11",),
        Difference(extra=("TCL501",)),
        "torch cannot tell by the output: the argument is written, with the value that it has anyway",
    ),
    Entry(
        "state-dict-by-reference good 6",
        ("copy left out in row 10, column 15",),
        Difference(extra=("TCL701",)),
        "torch cannot tell by the output: the snapshot is read when the first weights have just been loaded again",
    ),
)
"""Where torch's output cannot tell, or the variant deserves another finding."""

COMMENTS_IN_FINGERPRINTS = ("comments at the end of lines",)
"""Known to be wrong: a comment behind a statement, such as one for another tool, changes the fingerprint."""


def accepted(program: str, transformation: str) -> Difference:
    """The difference that the tables hold; none where they hold nothing."""
    for entry in KNOWN + HINTS + BY_DESIGN:
        if entry.program == program and transformation in entry.transformations:
            return entry.difference
    return Difference()


CANNOT_TELL = {
    "TCL103": "writing through `.data` and under `no_grad` give the same values; only the version counter differs",
    "TCL104": "`.data` and `.detach()` give the same values",
    "TCL105": "a gradient without a graph is the same with `.data` and without",
}
"""Rules whose findings torch's output does not show: that they stay rests on the page, not on what a program prints."""
