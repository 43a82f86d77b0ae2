"""Proves that two runs of an int8 model part by rounding and by nothing else.

DynamicQuantizeLinear rounds x / scale to an integer. Two right runs differ in x by a few ulp, so where a quotient lies at a half they may
round it to neighbouring integers; that one step is 10^5 times an ulp, and from there the runs go their ways. `prove` shows of two runs on the
same inputs, node by node on the graph as it is written (no optimization):

  1. alone: given the very inputs that ONNX Runtime's node had, each node of the graph answers what ONNX Runtime's did: integers bit
     for bit, floats within the node's own rounding (bounds.py with e = 0 at the inputs), a quantized integer a step apart only
     as in 3. So no operator is wrong, before or after the runs part.
  2. in a chain, each run going on with its own tensors: of all that does not depend on a quantized tensor that differs, integers are
     equal bit for bit, and floats are no farther apart than what the node makes of its inputs' difference plus its own rounding
     (bounds.py). So, node after node, all difference is rounding, from the inputs on.
  3. the first quantized tensors that differ do so by exactly one step, where in both runs the quotient, taken in double from that run's
     x and scale, lies within q of the half between the two integers: q = (e(x) + |x / s| e(s)) / s + 2u |x / s|, the bounds of 2 and the
     rounding of the quotient itself. Where q reaches a half of a step the bound would say nothing: no proof.
"""
import dataclasses

import numpy as np

from bounds import U, Unknown, apart, bound, scale_bound
from runs import constants, each_alone, every_tensor


@dataclasses.dataclass
class Proof:
    """What was shown; `wrong` tells why not."""
    wrong: str = ""
    tensors: int = 0        # checked in the chain, before the runs part
    apart: float = 0.0      # the largest difference of a float there, relative to its tensor's largest magnitude
    parts: list = dataclasses.field(default_factory=list)  # (tensor, elements that differ, of how many)
    farthest: float = 0.0   # of those quotients, from a half, in steps
    allowed: float = 0.0    # the largest q there
    alone: int = 0          # nodes that answered right given ONNX Runtime's inputs

    def __str__(self):
        if self.wrong:
            return f"no proof: {self.wrong}"
        told = f"{self.alone} nodes right alone; {self.tensors} tensors equal or within their bounds (at most {self.apart:.1e} of the largest)"
        where = ", ".join(f"{count} of {size} elements of {name}" for name, count, size in self.parts)
        return told + (f"; then {where} round the other way, at most {self.farthest:.1e} of a step from a half (bound {self.allowed:.1e})"
                       if where else "")


class Wrong(Exception):
    pass


def same_kind(name, a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        raise Wrong(f"{name}: {a.dtype}{a.shape}, ONNX Runtime {b.dtype}{b.shape}")


def float_differs(name, a, b, e):
    """The largest difference, relative to the largest magnitude."""
    distance = apart(a, b)
    if not (distance <= e).all():
        at = np.unravel_index(np.argmax(np.where(distance <= e, -1, distance)), a.shape)
        raise Wrong(f"{name}: {a[at]!r}, ONNX Runtime {b[at]!r}, the bound {e[at]:.2e}")
    return float(distance.max(initial=0) / max(np.abs(b[np.isfinite(b)]).max(initial=0), 1e-30))


def at_half(name, q1, q2, n1, n2, allowed, proof):
    """n1 and n2, what the quotients q1 and q2 were rounded to, are equal, or one apart at a half. Gives how many differ."""
    differ = n1 != n2
    if not differ.any():
        return 0
    if np.abs(n1 - n2)[differ].max() != 1:
        raise Wrong(f"{name}: {int(np.abs(n1 - n2).max())} steps apart")
    half = (n1 + n2)[differ] / 2
    away = np.maximum(np.abs(q1[differ] - half), np.abs(q2[differ] - half))
    if allowed[differ].max() >= 0.5:
        raise Wrong(f"{name}: the bound of the quotient is {allowed[differ].max():.2f} steps, which says nothing")
    if (away > allowed[differ]).any():
        raise Wrong(f"{name}: a quotient {away.max():.2e} of a step from a half, the bound {allowed[differ].max():.2e}")
    proof.farthest, proof.allowed = max(proof.farthest, away.max()), max(proof.allowed, allowed[differ].max())
    return int(differ.sum())


def quantized(node, x1, x2, e, ours, theirs, proof):
    """DynamicQuantizeLinear. e: the bounds of x. Gives how many elements are rounded the other way."""
    y, scale, zero = node.output
    s1, s2 = (float(run[scale]) for run in (ours, theirs))
    moves = scale_bound(x2.astype(np.float64), e, s2)
    proof.apart = max(proof.apart, float_differs(scale, ours[scale], theirs[scale], np.float64(moves)))
    if s1 == 0 or s2 == 0:
        raise Wrong(f"{scale}: 0")
    q1, q2 = x1.astype(np.float64) / s1, x2.astype(np.float64) / s2
    allowed = (e + np.abs(q2) * moves) / s1 + 2 * U * np.abs(q2)
    z1, z2 = (int(run[zero]) for run in (ours, theirs))
    low1, low2 = (np.array([-min(q.min(initial=0), 0.0)]) for q in (q1, q2))
    count = at_half(zero, low1, low2, np.array([z1]), np.array([z2]), np.array([allowed[q2 <= q2.min() + allowed.max()].max()]), proof)
    y1, y2 = ours[y].astype(int), theirs[y].astype(int)
    cut = (z1 != z2) & (np.isin(y1, (0, 255)) | np.isin(y2, (0, 255)))  # a zero point that moved moves the ends of the range
    n1, n2 = np.where(cut, 0, y1 - z1), np.where(cut, 0, y2 - z2)
    if np.abs(y1 - y2).max(initial=0) > 1:
        raise Wrong(f"{y}: {np.abs(y1 - y2).max()} steps apart")
    found = at_half(y, q1, q2, n1, n2, allowed, proof)
    return max(count, found, int((y1 != y2).sum()))


class Walk:
    """Goes through the graph with two runs. Alone: each node starts anew from the second run's tensors."""

    def __init__(self, proto, feeds, ours, theirs, alone):
        fixed = {**constants(proto), **feeds}
        self.nodes = [node for node in proto.graph.node if node.op_type != "Constant"]
        self.ours, self.theirs, self.alone = {**fixed, **ours}, {**fixed, **theirs}, alone
        self.to_quantize = {node.input[0] for node in self.nodes if node.op_type == "DynamicQuantizeLinear"}
        self.bounds, self.tainted, self.proof = {}, set(), Proof()

    def node(self, node):
        names = [name for name in node.input if name]
        if not self.alone and self.tainted.intersection(names):
            self.tainted.update(node.output)
            return
        o = [(self.theirs if self.alone else self.ours)[name] for name in names]
        t = [self.theirs[name] for name in names]
        if node.op_type == "DynamicQuantizeLinear":
            e = self.bounds.get(names[0]) if not self.alone else None
            e = np.zeros(t[0].shape) if e is None else e  # a graph's input
            count = quantized(node, o[0], t[0], e, self.ours, self.theirs, self.proof)
            if count:
                self.tainted.update(node.output)
                self.proof.parts.append((node.output[0], count, t[0].size))
        else:
            self.check(node, o, t)
        self.proof.tensors += len(node.output)

    def check(self, node, o, t):
        if len(node.output) != 1:
            raise Unknown(f"{node.op_type} with {len(node.output)} outputs")
        name = node.output[0]
        a, b = self.ours[name], self.theirs[name]
        same_kind(name, a, b)
        equal = a.tobytes() == b.tobytes()
        if b.dtype.kind != "f" and not equal:
            raise Wrong(f"{name} ({node.op_type}): integers that differ")
        if equal and name not in self.to_quantize:
            return
        self.bounds[name] = bound(node, o, t, a, b)
        self.proof.apart = max(self.proof.apart, float_differs(f"{name} ({node.op_type})", a, b, self.bounds[name]))

    def go(self):
        try:
            for node in self.nodes:
                self.node(node)
        except Wrong as problem:
            self.proof.wrong = str(problem)
        except Unknown as problem:
            self.proof.wrong = f"no bound is known for {problem}"
        return self.proof


def prove(proto, feeds, always=True, spoiled=None):
    """The Proof for a graph on these inputs; unless `always`, nodes are looked at alone only where the runs part.
    spoiled: another graph for plimsoll, to see that the proof fails."""
    ours, theirs = every_tensor(proto, feeds, spoiled)
    proof = Walk(proto, feeds, ours, theirs, alone=False).go()
    if proof.wrong or not (always or proof.parts):
        return proof
    alone = Walk(proto, feeds, each_alone(spoiled or proto, {**feeds, **theirs}), theirs, alone=True).go()
    if alone.wrong:
        return Proof(f"alone, {alone.wrong}")
    return dataclasses.replace(proof, alone=sum(node.op_type != "Constant" for node in proto.graph.node))
