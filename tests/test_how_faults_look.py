"""How faults of copying look in real code, point by point: what it takes to see them, and what must not be said.

Each point has its own programs, which are executed as well. What waits for a rule is an expected failure until the rule
has a page; what is not seen for another reason is one with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from running.runner import Runner

from torchcopylint import check_source
from torchcopylint.base.finding import Finding
from torchcopylint.pages import load_pages

PRELUDE = """\
import copy
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
"""
Said = Callable[[str], set[str]]


def waits_for(*codes: str) -> pytest.MarkDecorator:
    """The point is seen by one of these rules, none of which is there yet."""
    there = load_pages().keys() & set(codes)
    return pytest.mark.xfail(not there, raises=AssertionError, strict=True, reason=f"waits for {' or '.join(codes)}")


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as started:
        yield started


@pytest.fixture
def said(runner: Runner) -> Said:
    """The codes that are reported in a program; its lines that end with `# <- raises` are where torch raises."""

    def run(program: str) -> set[str]:
        code = PRELUDE + program
        raising = {row for row, line in enumerate(code.splitlines(), start=1) if line.endswith("# <- raises")}
        raised = runner.run(code).raised
        if ({raised.line} if raised else set()) != raising:
            # No assertion: an expected failure must not hide that the program is wrong.
            raise ValueError(f"torch does something else: {raised}")
        return {finding.code for finding in findings(program)}

    return run


def findings(program: str) -> list[Finding]:
    return check_source(PRELUDE + program, "example.py")


class TestWhatItTakes:
    def test_the_order_of_events(self, said: Said) -> None:
        """The same lines are right if the write comes first, or nobody reads afterwards."""
        assert said("a = torch.ones(2)\nb = a[:1]\na += 1\nprint(a, b)\n") == {"TCL501"}
        assert said("a = torch.ones(2)\na += 1\nb = a[:1]\nprint(a, b)\n") == set()
        assert said("a = torch.ones(2)\nb = a[:1]\nprint(a, b)\na += 1\n") == set()

    @waits_for("TCL708")
    def test_the_next_turn_of_the_loop(self, said: Said) -> None:
        loop = (
            "buffer = torch.zeros(2)\nkept = []\nfor i in range(3):\n    buffer += i\n    kept.append({})\n"
            "print(kept)\n"
        )
        assert "TCL708" in said(loop.format("buffer"))
        assert said(loop.format("buffer.clone()")) == set()

    def test_the_next_turn_of_the_loop_reads_what_this_one_wrote(self, said: Said) -> None:
        turn = (
            "w = torch.ones(2)\nlast = None\nfor i in range(3):\n    if last is not None:\n        print(w - last)\n"
            "    last = {}\n    w += 1\n"
        )
        assert said(turn.format("w.view(2)")) == {"TCL501"}
        assert said(turn.format("w.clone()")) == set()

    def test_the_next_turn_of_the_loop_when_the_first_sees_a_copy(self, said: Said) -> None:
        turn = (
            "w = torch.ones(2)\nlast = w.clone()\nfor i in range(3):\n    print(w - last)\n"
            "    last = w.view(2)\n    w += 1\n"
        )
        assert said(turn) == {"TCL501"}

    @pytest.mark.parametrize("place", ["keep['w']", "keep.best"])
    def test_another_name_attribute_or_container(self, said: Said, place: str) -> None:
        made = "keep = {}\n" if "[" in place else "class Keep:\n    pass\n\n\nkeep = Keep()\n"
        program = made + f"w = torch.ones(2)\n{place} = w[:]\nw += 1\nprint(w, {place})\n"
        assert said(program) == {"TCL501"}
        assert said(program.replace("w[:]", "w.clone()")) == set()

    def test_a_plain_second_name(self, said: Said) -> None:
        assert said("a = torch.ones(2)\nb = a\na += 1\nprint(a, b)\n") == {"TCL501"}
        assert said("a = torch.ones(2)\nb = a\na = a + 1\nprint(a, b)\n") == set()

    def test_facts_about_a_class(self, said: Said) -> None:
        """Shared in one method, read in another, and trained in between."""
        trainer = (
            "class Trainer:\n"
            "    def __init__(self):\n"
            "        self.model = nn.Linear(1, 1)\n"
            "        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)\n"
            "    def keep(self):\n"
            "        self.best = {}\n"
            "    def train(self):\n"
            "        self.model(torch.ones(1, 1)).sum().backward()\n"
            "        self.optimizer.step()\n"
            "    def restore(self):\n"
            "        self.model.load_state_dict(self.best)\n"
            "trainer = Trainer()\ntrainer.keep()\ntrainer.train()\ntrainer.restore()\n"
        )
        assert said(trainer.format("self.model.state_dict()")) == {"TCL701"}
        assert said(trainer.format("copy.deepcopy(self.model.state_dict())")) == set()

    @pytest.mark.parametrize("view", ["x[0]", "x.view(-1)", "x.T", "x.narrow(0, 0, 1)", "x.diagonal()"])
    def test_views(self, said: Said, view: str) -> None:
        assert said(f"x = torch.ones(2, 2)\ny = {view}\nx *= 2\nprint(x, y)\n") == {"TCL501"}

    def test_views_of_which_there_are_several(self, said: Said) -> None:
        assert said("x = torch.ones(2, 2)\ny = x.chunk(2)[0]\nx *= 2\nprint(x, y)\n") == {"TCL501"}

    @waits_for("TCL502")
    def test_views_that_may_be_copies(self, said: Said) -> None:
        """A caller's tensor that is contiguous already is written."""
        program = (
            "def f(x: torch.Tensor):\n    y = x.contiguous()\n    y *= 2\n    return y.sum()\n\n\n"
            "a = torch.ones(2)\nprint(f(a), a)\n"
        )
        assert said(program) & {"TCL502", "TCL503"}

    @pytest.mark.parametrize(
        "receiver",
        [
            "class Reply:\n    data = [1]\n\n\nx = Reply()",
            "x = np.ones(2)",
            "import io\nx = type('X', (), {'data': 1})()",
        ],
    )
    def test_what_the_receiver_is(self, said: Said, receiver: str) -> None:
        """`.data` of what is no tensor is nobody's business."""
        assert said(f"{receiver}\nprint(x.data)\n") == set()

    @waits_for("TCL202")
    @pytest.mark.parametrize("op", ["torch.relu(h)", "h.sigmoid()", "h.exp()"])
    def test_what_an_operation_keeps_for_backward(self, said: Said, op: str) -> None:
        write = f"h = w * 2\ny = {op}\ny += 1\ny.sum().backward()  # <- raises\n"
        assert said(f"w = torch.ones(2, requires_grad=True)\n{write}") == {"TCL202"}

    @pytest.mark.parametrize("op", ["h + 1", "h - h", "F.linear(h, torch.ones(2, 2))"])
    def test_what_an_operation_does_not_keep(self, said: Said, op: str) -> None:
        write = f"h = w * 2\ny = {op}\ny += 1\ny.sum().backward()\n"
        assert said(f"w = torch.ones(2, requires_grad=True)\n{write}") == set()

    def test_a_helper_in_the_same_file_clones_or_does_not(self, said: Said) -> None:
        program = "def head(x):\n    return {}\n\n\na = torch.ones(4)\nb = head(a)\na += 1\nprint(a, b)\n"
        assert said(program.format("x[:2]")) == {"TCL501"}
        assert said(program.format("x[:2].clone()")) == set()

    def test_a_helper_in_the_same_file_writes_its_argument_or_does_not(self, said: Said) -> None:
        program = "def shift(x):\n    {}\n\n\na = torch.ones(4)\nb = a[:2]\nshift(a)\nprint(a, b)\n"
        assert said(program.format("x.add_(1)")) == {"TCL501"}
        assert said(program.format("return x.add(1)")) == set()


class TestWhatIsTrueOfThem:
    @pytest.mark.parametrize(
        "write",
        [
            "net(torch.ones(1, 1)).sum().backward()\noptimizer.step()",
            "net.load_state_dict(other.state_dict())",
            "with torch.no_grad():\n    for p in net.parameters():\n        p.mul_(2)",
        ],
    )
    def test_the_write_is_usually_not_written_as_one(self, said: Said, write: str) -> None:
        program = (
            "net, other = nn.Linear(1, 1), nn.Linear(1, 1)\n"
            "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
            f"best = {{}}\n{write}\nother.load_state_dict(best)\n"
        )
        assert said(program.replace("{}", "net.state_dict()")) == {"TCL701"}
        assert said(program.replace("{}", "copy.deepcopy(net.state_dict())")) == set()

    def test_the_forward_pass_of_a_batch_norm_is_a_write(self, said: Said) -> None:
        program = (
            "norm = nn.BatchNorm1d(1)\nmean = norm.running_mean.view(1)\nnorm(torch.ones(4, 1))\n"
            "print(norm.running_mean - mean)\n"
        )
        assert said(program) == {"TCL501"}
        assert said(program.replace("norm(torch", "norm.eval()\nnorm(torch")) == set()
        assert said(program.replace("view(1)", "clone()")) == set()

    def test_a_snapshot_by_reference_is_a_fault_only_if_it_outlives_the_step(self, said: Said) -> None:
        start = "net, other = nn.Linear(1, 1), nn.Linear(1, 1)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        step = "net(torch.ones(1, 1)).sum().backward()\noptimizer.step()\n"
        assert said(f"{start}w = net.state_dict()\nother.load_state_dict(w)\n{step}") == set()
        assert said(f"import io\n{start}w = net.state_dict()\ntorch.save(w, io.BytesIO())\n{step}") == set()
        assert said(f"{start}{step}w = net.state_dict()\nother.load_state_dict(w)\n") == set()
        assert said(f"{start}w = net.state_dict()\n{step}other.load_state_dict(w)\n") == {"TCL701"}

    def test_a_state_dict_method_that_copies_is_no_reference(self, said: Said) -> None:
        program = (
            "class Net(nn.Linear):\n"
            "    def state_dict(self, *args, **kwargs):\n"
            "        return copy.deepcopy(super().state_dict(*args, **kwargs))\n"
            "net = Net(1, 1)\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nbest = net.state_dict()\n"
            "net(torch.ones(1, 1)).sum().backward()\noptimizer.step()\nnet.load_state_dict(best)\n"
        )
        assert said(program) == set()

    @waits_for("TCL502", "TCL503")
    def test_fresh_or_not_decides(self, said: Said) -> None:
        """The same two lines are right for what was made here, or bound anew, and wrong for an argument."""
        program = (
            "def f(x: torch.Tensor):\n    {}\n    x = x.float()\n    x[0] = 0\n    return x.sum()\n\n\n"
            "d = torch.ones(2)\nprint(f(d), d)\n"
        )
        assert said(program.format("pass")) != set()
        assert said(program.format("x = x * 2")) == set()
        assert said(program.format("x = torch.zeros(2)")) == set()

    def test_both_arms_are_not_one_path(self, said: Said) -> None:
        program = (
            "x = torch.ones(2)\nfirst = None\nif len(x) > {}:\n    first = x[:1]\n    print(x, first)\n"
            "else:\n    x += 1\n    print(x)\n"
        )
        assert said(program.format(1)) == set()

    def test_both_arms_are_not_one_path_but_two_turns_are(self, said: Said) -> None:
        program = (
            "x = torch.ones(2)\nkept = None\nfor i in range(4):\n    if i % 2:\n        kept = x[:]\n"
            "    else:\n        x += 1\n    if kept is not None:\n        print(x - kept)\n"
        )
        assert said(program) == {"TCL501"}

    def test_twins_stand_side_by_side(self, said: Said) -> None:
        """One of two siblings clones. The finding is about the other."""
        program = "a = torch.ones(2)\nx = a.clone()\ny = a[:]\na += 1\nprint(a, x, y)\n"
        assert said(program) == {"TCL501"}
        (finding,) = findings(program)
        assert {step.span.start.row - 5 for step in finding.steps} == {3, 4, 5}

    def test_intended_sharing_says_so_by_tying(self, said: Said) -> None:
        program = (
            "class Tied(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.table = nn.Embedding(3, 2)\n        self.head = nn.Linear(2, 3, bias=False)\n"
            "        self.head.weight = self.table.weight\n\n\nnet = Tied()\n"
            "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\nnet.head(torch.ones(1, 2)).sum().backward()\n"
            "optimizer.step()\nprint(net.table.weight, net.head.weight)\n"
        )
        assert said(program) == set()

    def test_intended_sharing_says_so_by_tying_in_a_script(self, said: Said) -> None:
        program = (
            "a, b = nn.Linear(2, 2), nn.Linear(2, 2)\nb.weight = a.weight\n"
            "with torch.no_grad():\n    a.weight += 1\nprint(a.weight, b.weight)\n"
        )
        assert said(program) == set()
        assert said(program.replace("b.weight = a.weight", "b.weight.data = a.weight.data")) == {"TCL102"}

    @pytest.mark.parametrize("name", ["scale_", "shift_"])
    def test_intended_writing_says_so_by_a_trailing_underscore(self, said: Said, name: str) -> None:
        assert (
            said(f"def {name}(x: torch.Tensor):\n    x *= 2\n    return x\n\n\nprint({name}(torch.ones(2)))\n") == set()
        )

    def test_intended_writing_says_so_by_a_parameter(self, said: Said) -> None:
        program = (
            "def scale(x: torch.Tensor, inplace=False):\n    if not inplace:\n        x = x.clone()\n"
            "    x *= 2\n    return x\n\n\na = torch.ones(2)\nprint(scale(a), a)\n"
        )
        assert said(program) == set()

    def test_discarded_results_are_faults_only_on_tensors(self, said: Said) -> None:
        assert said("x = torch.ones(2)\nx.double()\nprint(x)\n") == {"TCL602"}
        assert said("x = nn.Linear(1, 1)\nx.double()\nprint(x)\n") == set()
        own = (
            "class Box:\n    def double(self):\n        self.n = 2\n        return self\n\n\nx = Box()\n"
            "x.double()\nprint(x.n)\n"
        )
        assert said(own) == set()

    def test_the_condition_matters_to_the_words(self) -> None:
        """ "When", not "may": no message of a page hedges."""
        for page in load_pages().values():
            for variant in ("", *page.variants):
                assert not {"may", "might", "could", "possibly"} & set(page.get("message", variant).split())

    @waits_for("TCL703")
    def test_zero_grad_sets_to_none_so_that_a_kept_gradient_survives(self, said: Said) -> None:
        program = (
            "p = torch.ones(2, requires_grad=True)\noptimizer = torch.optim.SGD([p], lr=0.1)\np.sum().backward()\n"
            "g = p.grad\noptimizer.zero_grad({})\n(p * 3).sum().backward()\nprint(g - p.grad)\n"
        )
        assert said(program.format("")) == set()
        assert said(program.format("set_to_none=False")) == {"TCL703"}

    def test_an_isinstance_guard_is_right(self, said: Said) -> None:
        program = "def f(x):\n    if isinstance(x, {}):\n        x.clip(0)\n    return x\n\n\nprint(f({}))\n"
        assert said(program.format("torch.Tensor", "torch.ones(1)")) == {"TCL602"}
        assert said(program.format("np.ndarray", "np.ones(1)")) == set()

    def test_names_are_hints_and_no_proof(self, said: Said) -> None:
        own = (
            "class Model:\n    def state_dict(self):\n        return {}\n    def load_state_dict(self, d):\n"
            "        pass\n    def step(self):\n        pass\n"
        )
        program = own + "model = Model()\nbest = model.state_dict()\nmodel.step()\nmodel.load_state_dict(best)\n"
        assert said(program) == set()

    def test_what_an_imported_helper_does_is_not_guessed(self, said: Said) -> None:
        program = "from copy import copy as helper\na = torch.ones(2)\nb = a[:]\nlen(b)\nprint(a, b)\n"
        assert said(program) == set()


class TestWhatTorchRefuses:
    @waits_for("TCL205")
    @pytest.mark.parametrize("take", ["x.unbind()[0]", "x.chunk(2)[0]", "x.split(1)[0]"])
    def test_1_outputs_of_several_views_cannot_be_written(self, said: Said, take: str) -> None:
        program = "w = torch.ones(2, 2, requires_grad=True)\nx = w * 1\nrow = {}\nrow += 1{}\n"
        assert said(program.format(take, "  # <- raises")) == {"TCL205"}
        assert said(program.format("x[0]", "")) == set()
        assert said(program.format("x.narrow(0, 0, 1)", "")) == set()

    @waits_for("TCL206")
    def test_2_a_view_taken_without_grad_cannot_be_written_with_it(self, said: Said) -> None:
        program = "w = torch.ones(2, requires_grad=True)\nx = w * 1\nwith torch.{}():\n    v = x[:1]\nv += 1{}\n"
        assert said(program.format("no_grad", "  # <- raises")) == {"TCL206"}
        assert said(program.format("enable_grad", "")) == set()

    @waits_for("TCL207")
    def test_3_inference_tensors_are_a_state_of_their_own(self, said: Said) -> None:
        program = "w = torch.ones(2, requires_grad=True)\nwith torch.inference_mode():\n    x = torch.ones(2)\n{}\n"
        assert said(program.format("y = w + x")) == set()
        assert said(program.format("y = w * x  # <- raises")) == {"TCL207"}
        assert said(program.format("x /= 2  # <- raises")) == {"TCL207"}

    @waits_for("TCL209")
    def test_4_a_custom_function_marks_what_it_writes(self, said: Said) -> None:
        program = (
            "class Bump(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        {}\n"
            "        x += 1\n"
            "        return x\n    @staticmethod\n    def backward(ctx, g):\n        return g\n"
            "h = torch.ones(2, requires_grad=True) * 1\nprint(Bump.apply(h))\n"
        )
        assert said(program.format("pass")) == {"TCL209"}
        assert said(program.format("ctx.mark_dirty(x)")) == set()

    @waits_for("TCL202")
    def test_5_backward_also_keeps_indices_and_masks(self, said: Said) -> None:
        program = (
            "w = torch.ones(2, requires_grad=True)\ni = torch.tensor([0, 1])\ny = w.{}\ni += 1\ny.sum().backward(){}\n"
        )
        assert said(program.format("gather(0, i)", "  # <- raises")) == {"TCL202"}
        assert said(program.format("add(i)", "")) == set()

    @waits_for("TCL202")
    def test_6_a_write_through_detach_is_counted_and_one_through_data_is_not(self, said: Said) -> None:
        program = "w = torch.ones(2, requires_grad=True)\ny = w.sigmoid()\n{}\ny.sum().backward(){}\n"
        assert "TCL202" in said(program.format("y.detach().zero_()", "  # <- raises"))
        assert said(program.format("y.data.zero_()", "")) == {"TCL101"}

    @waits_for("TCL312")
    def test_7_a_second_backward_is_fine_where_nothing_was_saved(self, said: Said) -> None:
        program = "w = torch.ones(2, requires_grad=True)\ny = (w {} w).sum()\ny.backward()\ny.backward(){}\n"
        assert said(program.format("*", "  # <- raises")) == {"TCL312"}
        assert said(program.format("+", "")) == set()

    def test_7_requires_grad_after_the_view_or_the_operation(self, said: Said) -> None:
        program = "w = torch.ones(2)\n{}\nv = w[:1]\n{}\nwith torch.no_grad():\n    v += 1\n"
        assert said(program.format("w.requires_grad_()", "pass")) == set()
        assert said(program.format("pass", "w.requires_grad_()")) == set()

    @waits_for("TCL208")
    def test_8_out_that_is_an_operand_is_silently_wrong(self, said: Said) -> None:
        assert said("c = torch.eye(64)\ntorch.mm(c, c, out=c)\n") == {"TCL208"}

    def test_8_out_that_requires_grad_raises(self, said: Said) -> None:
        program = "w = torch.ones(2, requires_grad=True)\nout = torch.empty(2)\ntorch.mul({}, 2, out=out){}\n"
        assert said(program.format("w", "  # <- raises")) == {"TCL201"}
        assert said(program.format("w.detach()", "")) == set()

    @waits_for("TCL404")
    def test_9_arrays_that_cannot_be_written(self, said: Said) -> None:
        program = "a = np.broadcast_to(np.ones(1), (3,))\nt = torch.from_numpy({})\nt[0] = 5\n"
        assert said(program.format("a")) == {"TCL404"}
        assert said(program.format("a.copy()")) == set()

    @waits_for("TCL210")
    def test_10_a_hook_that_edits_its_gradient(self, said: Said) -> None:
        program = (
            "w = torch.ones(2, requires_grad=True)\nh = w * 1\nh.register_hook(lambda g: {})\n"
            "(h * 2).sum().backward()\n"
        )
        assert said(program.format("g.mul_(2)")) == {"TCL210"}
        assert said(program.format("g * 2")) == set()

    @waits_for("TCL214")
    def test_10_a_pack_hook_that_edits_its_input(self, said: Said) -> None:
        program = (
            "def pack(x):\n    {}\n\n\ndef unpack(x):\n    return x\n\n\nw = torch.ones(2, requires_grad=True)\n"
            "with torch.autograd.graph.saved_tensors_hooks(pack, unpack):\n    y = (w * 1).exp(){}\n"
        )
        assert "TCL214" in said(program.format("return x.mul_(2)", "  # <- raises"))
        assert said(program.format("return x * 2", "")) == set()
