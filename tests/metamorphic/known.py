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


KNOWN: tuple[Entry, ...] = (
    Entry(
        "graph-broken bad 6",
        ("conditional expression",),
        Difference(missing=("TCL307[term]@9 error/medium",)),
        "a term of a loss is what one expression makes of it",
    ),
    Entry(
        "view-mutated bad 8",
        ("conditional expression", "through a second name", "unpacked from a tuple"),
        Difference(missing=("TCL501[result]@5 error/medium",)),
        "a name of its own is what the call itself is bound to",
    ),
    Entry(
        "gradient-by-reference bad 5",
        ("all in a function", "through a second name", "conditional expression"),
        Difference(missing=("TCL703[state]@18 warning/medium",)),
        "a gradient in an optimizer's state is looked for as it is written there, by a class of the module",
    ),
    Entry(
        "cached-sample-mutated bad 6",
        ("all in a function",),
        Difference(missing=("TCL504[memo]@14 error/high",)),
        "a decorator is looked up among the imports of the file, not among those of a function",
    ),
    Entry(
        "cached-sample-mutated bad 5",
        ("conditional expression",),
        Difference(missing=("TCL504[transform]@8 error/medium",), extra=("TCL504@8 warning/medium",)),
        "what a dataset keeps is followed by way of names and shallow copies; on an arm, its sample is one",
    ),
    Entry(
        "inplace-activation-overwrites-input bad 8",
        ("conditional expression",),
        Difference(missing=("TCL203[identity]@8 warning/medium",)),
        "a layer that is called on an arm may be the one that the same condition has chosen",
    ),
    Entry(
        "inplace-activation-overwrites-input bad 5",
        (
            "through a second name",
            "unpacked from a tuple",
            "conditional expression",
            "variables as attributes of self",
        ),
        Difference(missing=("TCL203@5 error/medium",)),
        "the layers of a chain are those of the call that its one name is bound to",
    ),
    Entry(
        "custom-function-output-written bad 4",
        (
            "through a second name",
            "unpacked from a tuple",
            "conditional expression",
            "variables as attributes of self",
        ),
        Difference(missing=("TCL213[chain]@8 error/high",)),
        "the layers of a chain are those of the call that its one name is bound to",
    ),
    Entry(
        "tensor-of-tensor bad 4",
        ("conditional expression",),
        Difference(missing=("TCL902[term]@9 error/medium",)),
        "the terms of a loss are followed by way of names, fields and displays, and not through conditions",
    ),
    Entry(
        "redundant-copy bad 1",
        ("copy left out in row 5, column 9",),
        Difference(extra=("TCL601",)),
        "what the copy was for was lost with it: nobody reads what is written, with the copy or without",
    ),
    Entry(
        "repeated-module bad 1",
        ("conditional expression",),
        Difference(missing=("TCL706@5 error/high",)),
        "the arm of a test is taken for a choice between one module for all and something else",
    ),
    Entry(
        "inplace-activation-overwrites-input bad 3",
        ("conditional expression", "unpacked from a tuple"),
        Difference(missing=("TCL203[input]@8 error/medium",), extra=("TCL203[input]@14 error/medium",)),
        "a layer that is not surely the only one that a chain may begin with is told at the call",
    ),
    Entry(
        "state-dict-item-assigned bad 2",
        ("conditional expression", "through a second name", "unpacked from a tuple"),
        Difference(missing=("TCL604@9 error/high",)),
        "a dict with two names is taken to be wanted",
    ),
    Entry(
        "state-dict-item-assigned bad 3",
        ("all in a function",),
        Difference(missing=("TCL604@11 error/high",)),
        "an annotation or a base class is looked up among the imports of the file, not among those of a function",
    ),
    Entry(
        "parameter-assigned-tensor bad 3",
        ("all in a function",),
        Difference(missing=("TCL803@6 error/high",)),
        "an annotation or a base class is looked up among the imports of the file, not among those of a function",
    ),
    Entry(
        "stale-optimizer-parameters bad 2",
        ("all in a function",),
        Difference(missing=("TCL802@10 warning/high",)),
        "an annotation or a base class is looked up among the imports of the file, not among those of a function",
    ),
    Entry(
        "stale-optimizer-parameters bad 3",
        ("all in a function",),
        Difference(missing=("TCL802@7 warning/high",), extra=("TCL802@7 warning/medium",)),
        "an annotation or a base class is looked up among the imports of the file, not among those of a function",
    ),
    Entry(
        "parameter-in-two-groups bad 1",
        ("all in a function",),
        Difference(missing=("TCL805@14 error/high",), extra=("TCL805@14 error/medium",)),
        "an annotation or a base class is looked up among the imports of the file, not among those of a function",
    ),
    Entry(
        "write-to-index-copy bad 4",
        ("all in a function",),
        Difference(missing=("TCL601[named]@8 error/high",), extra=("TCL601[named]@8 error/medium",)),
        "what is passed on is known from the call alone",
    ),
    Entry(
        "write-to-index-copy bad 4",
        (
            "conditional expression",
            "through a second name",
        ),
        Difference(missing=("TCL601[named]@8 error/high",)),
        "a copy with two names is taken to be wanted",
    ),
    Entry(
        "graph-accumulated bad 7",
        ("through a second name", "unpacked from a tuple", "variables as attributes of self"),
        Difference(missing=("TCL304[figure]@10 warning/high",)),
        "a sum is followed to where it ends through names that hold nothing else",
    ),
    Entry(
        "graph-accumulated bad 3",
        ("through a second name", "unpacked from a tuple"),
        Difference(missing=("TCL304@19 warning/high",)),
        "`error = error + x` is a sum only if the name is bound to the addition itself",
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
        "result-discarded good 8",
        ("every member imported",),
        Difference(extra=("TCL602@12 error/high",)),
        "a false alarm: `suppress` is known as `contextlib.suppress` only, not imported by itself",
    ),
    Entry(
        "data-assign-shares-storage bad 4",
        ("all in a function",),
        Difference(missing=("TCL102@9 warning/high",), extra=("TCL104@9 warning/high",)),
        "a class in a function does not see the imports of that function",
    ),
    Entry(
        "data-assign-shares-storage bad 6",
        ("all in a function",),
        Difference(missing=("TCL102[conversion]@7 info/high",), extra=("TCL103[assign]@7 warning/high",)),
        "as above, for the annotation of a function in a function",
    ),
    Entry(
        "legacy-tensor-constructor bad 1",
        ("all in a function",),
        Difference(missing=("TCL405@10 warning/high",)),
        "as above",
    ),
    Entry(
        "load-state-dict-assign-shares bad 1",
        ("copy left out in row 8, column 9",),
        Difference(missing=("any finding",)),
        "a module that took over the tensors of another one is not known to be written with it",
    ),
    Entry(
        "load-state-dict-assign-shares bad 4",
        ("copy left out in row 12, column 9",),
        Difference(extra=("TCL702",)),
        "a false alarm: an optimizer is not known to leave a module alone that has other tensors by now",
    ),
    Entry(
        "detach-inplace-assigned bad 4",
        ("unpacked from a tuple",),
        Difference(missing=("TCL301[bound]@7 warning/high",)),
        "the result of `detach_()` is not seen to be bound where it is unpacked from a tuple",
    ),
    *(
        Entry(
            program,
            ("copied at every share",),
            Difference(missing=(finding,)),
            "a deep copy of a list keeps entries that are one tensor one; the engine takes every copied entry for new",
        )
        for program, finding in (
            ("repeated-tensor bad 1", "TCL707@4 error/high"),
            ("repeated-tensor bad 2", "TCL707@5 error/high"),
            ("repeated-tensor bad 3", "TCL707@12 error/high"),
        )
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
            ("numpy-requires-grad bad 1", ("TCL403@15 warning/medium",)),
            ("graph-broken bad 4", ("TCL307[number]@9 error/high",)),
            ("from-numpy-layout bad 1", ("TCL404@7 error/high",)),
            ("view-after-transpose bad 1", ("TCL508@6 warning/high",)),
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
            ("parameter-snapshot-by-reference good 11", "TCL104 in statement 7 warning/high"),
        )
    ),
    Entry(
        "detach-shares-memory bad 5",
        ("write moved back",),
        Difference(missing=("TCL303",)),
        "the weight of a module is overwritten at the end of a method and read by the next call of another one",
    ),
    Entry(
        "cached-sample-mutated bad 7",
        ("write moved back",),
        Difference(missing=("TCL504",)),
        "the field is changed at the end of a method and read by the next call: that is how a state is kept",
    ),
    Entry(
        "conditional-copy-mutated bad 4",
        ("write moved back",),
        Difference(missing=("TCL502",)),
        "a write into the caller's tensor whose own result nobody reads counts as one that is meant",
    ),
    Entry(
        "state-dict-by-reference good 12",
        ("copy left out in row 16, column 15",),
        Difference(missing=("any finding",)),
        "an own `state_dict` that returns what `super().state_dict()` returns is not seen to share",
    ),
)
"""Where the linter is wrong. Whoever puts one right removes it here."""

HINTS: tuple[Entry, ...] = (
    Entry(
        "data-assign-shares-storage good 11",
        ("variables renamed",),
        Difference(missing=("TCL103[idiom]@6 info/medium",), extra=("TCL103[assign]@6 warning/medium",)),
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
    *(
        Entry(
            program,
            (f"copy left out in {place}",),
            Difference(extra=(extra,)),
            "torch cannot tell by the output: nobody prints what the parameters held before",
        )
        for program, place, extra in (
            ("clone-before-detach bad 1", "row 7, column 19", "TCL708"),
            ("clone-before-detach good 4", "row 7, column 19", "TCL708"),
            ("variable-deprecated bad 3", "row 7, column 9", "TCL702"),
        )
    ),
    Entry(
        "clone-before-detach bad 3",
        ("copy left out in row 8, column 39",),
        Difference(extra=("TCL102",)),
        "without the copy the buffer is on the storage of the weight; the program ends before either is written",
    ),
    Entry(
        "inplace-on-multi-output-view bad 4",
        ("write moved back",),
        Difference(missing=("TCL205",)),
        "only the copy that stands in for the views raises, since they have a graph, which `deepcopy` refuses",
    ),
    Entry(
        "gradient-by-reference bad 3",
        ("write moved back",),
        Difference(extra=("TCL703@8 error/medium",)),
        "the gradients are zeroed in place all the same",
    ),
    Entry(
        "detach-inplace-assigned good 8",
        ("through a second name",),
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
        Difference(missing=("TCL102@7 warning/high",)),
        "torch cannot tell by the output: the other parameter still moves the target",
    ),
    Entry(
        "data-assign-shares-storage bad 1",
        ("copied at 8:19",),
        Difference(missing=("TCL102@8 warning/high",)),
        "as above",
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
        "gradient-by-reference bad 2",
        ("write moved back",),
        Difference(extra=("TCL703@12 error/medium",)),
        "the first gradient that is kept is then None, so that two batches print nothing; a third one would",
    ),
    Entry(
        "view-mutated good 9",
        ("copy left out in row 5, column 11",),
        Difference(extra=("TCL501",)),
        "torch cannot tell by the output: the argument is written, with the value that it has anyway",
    ),
    Entry(
        "function-inplace-without-mark-dirty good 6",
        ("copy left out in row 7, column 12",),
        Difference(extra=("TCL209",)),
        "torch cannot tell by the output: the input that is changed is not looked at again",
    ),
    Entry(
        "function-inplace-without-mark-dirty bad 2",
        ("copy left out in row 9, column 15",),
        Difference(missing=("any finding",)),
        "the copy is the fault: without it the input is returned, as it was promised",
    ),
    Entry(
        "state-dict-by-reference good 8",
        ("copy left out in row 10, column 15",),
        Difference(extra=("TCL701",)),
        "torch cannot tell by the output: the snapshot is read when the first weights have just been loaded again",
    ),
)
"""Where torch's output cannot tell, or the variant deserves another finding."""


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
    "TCL901": "in either order the values are the same; only a node of the graph is made and dropped",
    "TCL904": "a copy of what nobody else holds has the same values",
    "TCL509": "the values that are loaded are the same; only the file is larger",
    "TCL905": "stacked or not, the values are the same; only the time differs",
}
"""Rules whose findings torch's output does not show: that they stay rests on the page, not on what a program prints."""
