"""One piece of a piecewise-linear unit: a Gaussian cut to an interval, its weight W_j and its probability p_j, with the
symbols of ``mixture.py``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import combinations
from operator import add
from typing import NamedTuple

import torch
from torch import Tensor

from cavity.core.arrays import select
from cavity.core.channels.truncated import Cut, End, between, beyond, whole

Number = Tensor | float


class Line(NamedTuple):
    """x = slope·z + offset for z in (low, high)."""

    low: float
    high: float
    slope: float
    offset: float

    def at(self, z: float) -> float:
        return self.slope * z + self.offset


class Unit(NamedTuple):
    """What all pieces share; A is floored. Nothing tilts 𝒩(z; ω, V) where it is ``silent``, B = A = 0."""

    B: Tensor
    A: Tensor
    omega: Tensor
    V: Tensor
    s: Tensor
    silent: bool

    def edge(self, c: float) -> Tensor:
        """α."""
        return (c - self.omega) / self.s

    def slope(self, x: float) -> Tensor:
        """B − Ax."""
        return self.B - self.A * x if x else self.B

    def exponent(self, x: float) -> Number:
        """Bx − ½Ax²."""
        return x * self.slope(0.5 * x) if x else 0.0

    def rise(self, c: float, x: float, d: float, y: float) -> Number:
        """Exponent at the edge c with activation x less that at d with y, from products of differences."""
        along = (c - d) * (self.omega - 0.5 * (c + d)) / self.V if c != d else 0.0
        return along + ((x - y) * self.slope(0.5 * (x + y)) if x != y else 0.0)


class Piece(NamedTuple):
    """One W_j, with r = 1 + a²AV, its root and p_j."""

    line: Line
    r: Number
    root: Number
    cut: Cut
    p: Tensor

    def anchored(self, value: Callable[[float], Number]) -> Number:
        """A function of z at the anchor of the cut, where that is not the mode."""
        (low, high, _, _), cut = self.line, self.cut
        if cut.lower is None or cut.narrow is None:
            return value(low if cut.high is None else high)
        edge = select(cut.lower, value(low), value(high))
        return select(cut.narrow, value(0.5 * (low + high)), edge)

    def density(self, end: End | None) -> Tensor:
        """s ρ at an end of its cut."""
        assert end is not None
        return self.p * end.density * self.root

    def log_weight(self) -> Tensor:
        """log W_j less the exponent that it is counted from."""
        return self.cut.log_mass - 0.5 * torch.log(self.r) if isinstance(self.r, Tensor) else self.cut.log_mass


def make_piece(line: Line, unit: Unit, steepest: float, gain: Tensor) -> Piece:
    """The piece of a line, as if it were the only one: p = 1."""
    a = 0.0 if unit.silent else line.slope
    r: Number = 1.0 if a == 0 else gain if abs(a) == steepest else 1 + a * a * unit.A * unit.V
    root = torch.sqrt(r) if isinstance(r, Tensor) else r

    def place(c: float) -> Tensor:
        return (unit.edge(c) - a * unit.s * unit.slope(line.at(c))) / root if a else unit.edge(c)

    if math.isinf(line.low) and math.isinf(line.high):
        cut = whole(unit.omega + unit.V)
    elif math.isinf(line.high):
        cut = beyond(place(line.low), 1)
    elif math.isinf(line.low):
        cut = beyond(-place(line.high), -1)
    else:
        middle = place(0.5 * (line.low + line.high))
        cut = between(place(line.low), middle, place(line.high), root * ((line.high - line.low) / unit.s))
    return Piece(line, r, root, cut, torch.ones_like(unit.V))


def peak_of(line: Line, unit: Unit, r: Number) -> Number:
    """G."""
    a, b = line.slope, line.offset
    if not a:
        return unit.exponent(b)
    y = a * unit.omega + b
    return (unit.B * (y + (0.5 * a * a) * unit.V * unit.B) - 0.5 * unit.A * y.square()) / r


def _peak_difference(first: Piece, second: Piece, unit: Unit) -> Tensor:
    """G₁ − G₂ over the common denominator r₁r₂, where the terms without a difference of the two lines drop out."""
    (_, _, a, b), (_, _, c, d) = first.line, second.line
    B, A, omega, V = unit[:4]
    AV = A * V
    y, z = a * omega + b, c * omega + d
    linear = (a - c) * omega * (1 - a * c * AV) + (b - d) + (b * c * c - d * a * a) * AV
    square = ((a - c) * omega + (b - d)) * (y + z) + (b * c - d * a) * AV * (c * y + a * z)
    return (B * (linear + 0.5 * (a * a - c * c) * V * B) - 0.5 * A * square) / first.r / second.r


def _lead(first: Piece, second: Piece, unit: Unit) -> Tensor:
    """log W₁ − log W₂."""
    one, two = first.line, second.line
    rise = first.anchored(lambda c: second.anchored(lambda d: unit.rise(c, one.at(c), d, two.at(d))))
    rise = rise + first.cut.rise - second.cut.rise
    if (one.slope or two.slope) and not unit.silent:
        both = first.cut.inside & second.cut.inside
        rise = select(both, _peak_difference(first, second, unit), rise)
    return rise + first.log_weight() - second.log_weight()


def probabilities(pieces: list[Piece], unit: Unit) -> list[Tensor]:
    """p_j of two pieces or more."""
    leads = {(i, j): _lead(pieces[i], pieces[j], unit) for i, j in combinations(range(len(pieces)), 2)}
    if len(pieces) == 2:
        return [torch.sigmoid(leads[0, 1]), torch.sigmoid(-leads[0, 1])]
    odds = {pair: torch.exp(lead) for pair, lead in leads.items()}
    odds |= {(j, i): torch.exp(-lead) for (i, j), lead in leads.items()}
    others = [[odds[j, i] for j in range(len(pieces)) if j != i] for i in range(len(pieces))]
    return [(1 + added(them)).reciprocal() for them in others]


def added(terms: Sequence[Tensor]) -> Tensor:
    return reduce(add, terms)
