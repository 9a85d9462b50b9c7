"""The free energy of a piecewise-linear unit, x = a_j z + b_j on intervals, and its derivatives in closed form.

With s = √V and r_j = 1 + a_j² A V each term of e^φ = Σ_j W_j is a Gaussian cut to an interval,

    W_j = ∫ dz 𝒩(z; ω, V) e^{Bx − ½Ax²} = e^{G_j} r_j^{−½} P(t_j in the interval),      z = μ_j + t_j s/√r_j
    G_j = (B y_j − ½A y_j² + ½a_j² V B²)/r_j,      y_j = a_j ω + b_j,      edge c at t = (α − a_j s (B − A x_c))/√r_j

with t_j standard normal and α = (c − ω)/s. G is the exponent at the mode. Where the mode lies outside its interval, the
exponent at the nearer edge, −½α² + B x_c − ½A x_c², takes its place. Probabilities p_j = W_j/Σ W come from differences
of log W_j, in which what two pieces have in common is taken out on paper. With m_j and τ_j the mean of x and the
variance of t_j within a piece,

    x̂ = Σ p_j m_j,      Δ = Σ p_j a_j² V τ_j/r_j + Σ_{i<j} p_i p_j (m_i − m_j)²
    g = Σ p_j c_j + Σ_k J_k,      c_j = a_j (B − A m_j)

by parts, where J_k = (e^{E₊} − e^{E₋})𝒩(c_k; ω, V)/e^φ, E = Bx − ½Ax², is what a jump at the edge c_k adds. With z̄_j
the mean of z within a piece and δ_j its density at the lower edge less that at the upper one, Γ has two forms:

    VΓ = V Σ p_j (a_j² A τ_j/r_j − c_j δ_j) − V Σ_{i<j} p_i p_j (c_i − c_j)² + V (2 Σ p_j c_j + ΣJ_k) ΣJ_k − s Σ J_k α_k
    VΓ = Σ p_j (a_j² A V + 1 − τ_j)/r_j − Σ_{i<j} p_i p_j (z̄_i − z̄_j)²/V

The first vanishes with B and A, term by term; the second is good where B or A pin the unit. In narrow intervals the sum
c_j + δ_j = (z̄_j − ω)/V is much smaller than c_j, and terms of the first are joined accordingly. Terms of each form
cancel where another is good, so at each point the one with the smallest terms is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor

from cavity.core.arrays import select
from cavity.core.channels.pieces import Line, Number, Piece, Unit, added, make_piece, peak_of, probabilities
from cavity.core.channels.truncated import decrease


class Mixture(NamedTuple):
    """The pieces of a unit, from the lowest up."""

    unit: Unit
    pieces: list[Piece]

    def pairs(self) -> list[tuple[Piece, Piece, Tensor]]:
        """Lower and upper piece, and p_i p_j."""
        return [(lower, upper, lower.p * upper.p) for lower, upper in combinations(self.pieces, 2)]

    def sloped(self) -> list[Piece]:
        return [piece for piece in self.pieces if piece.line.slope]

    def apart(self, lower: Piece, upper: Piece, in_x: bool) -> Tensor:
        """z̄_j − z̄_i of two pieces in units of s, or m_j − m_i: from the edges outwards, where nothing cancels."""
        assert lower.cut.high is not None
        assert upper.cut.low is not None
        below, above = lower.cut.high.distance / lower.root, upper.cut.low.distance / upper.root
        low, high = lower.line, upper.line
        if not in_x:
            gap = high.low - low.high
            return below + above + gap / self.unit.s if gap else below + above
        distance = (low.slope * below if low.slope else 0.0) + (high.slope * above if high.slope else 0.0)
        return distance * self.unit.s + (high.at(high.low) - low.at(low.high))

    def average(self, piece: Piece, mode: Number, elsewhere: Callable[[float], Number], rate: Number) -> Tensor:
        """Mean within a piece of what changes by ``rate`` with t, from its value at the mode or elsewhere."""
        central = mode + rate * piece.cut.drift
        if len(self.pieces) == 1:
            return central
        return select(piece.cut.inside, central, piece.anchored(elsewhere) + rate * piece.cut.mean)

    def mean(self, piece: Piece) -> Number:
        """m_j."""
        (_, _, a, b), (B, _, omega, V, s) = piece.line, self.unit[:5]
        if not a:
            return b
        return self.average(piece, (a * (omega + a * B * V) + b) / piece.r, piece.line.at, a * s / piece.root)

    def pull(self, piece: Piece) -> Number:
        """c_j, the mean slope of the message over a piece."""
        (_, _, a, b), (B, A, omega, _, s) = piece.line, self.unit[:5]
        if not a:
            return 0.0
        mode = a * (B - A * (a * omega + b)) / piece.r
        return self.average(piece, mode, lambda c: a * self.unit.slope(piece.line.at(c)), -a * a * A * s / piece.root)

    def shift(self, piece: Piece) -> Tensor:
        """(z̄_j − ω)/s."""
        (_, _, a, b), (B, A, omega, _, s) = piece.line, self.unit[:5]
        mode = a * s * (B - A * (a * omega + b)) / piece.r if a else 0.0
        return self.average(piece, mode, self.unit.edge, 1 / piece.root)

    def value(self) -> Tensor:
        """φ."""
        return reduce(torch.logaddexp, [self.level(piece) + piece.log_weight() for piece in self.pieces])

    def level(self, piece: Piece) -> Number:
        """The exponent that log W_j is counted from."""
        line, unit = piece.line, self.unit
        peak = peak_of(line, unit, piece.r)
        if len(self.pieces) == 1:
            return peak
        edge = piece.anchored(lambda c: unit.exponent(line.at(c)) - 0.5 * unit.edge(c).square())
        return select(piece.cut.inside, peak, edge)

    def moments(self) -> tuple[Tensor, Tensor]:
        """x̂ and Δ."""
        means = [piece.p * self.mean(piece) for piece in self.pieces if piece.line.slope or piece.line.offset]
        spread = [pp * self.apart(lower, upper, True).square() for lower, upper, pp in self.pairs()]
        return added(means), added(spread + self.within(self.unit.V))

    def within(self, scale: Tensor) -> list[Tensor]:
        """p_j a_j² scale τ_j/r_j of the pieces with a slope."""
        return [one.p * (one.line.slope**2 * scale) * one.cut.variance / one.r for one in self.sloped()]

    def jump(self, number: int) -> Tensor | None:
        """s J of the edge above a piece, None where x is continuous; counted from the side on which e^E is larger."""
        below, above = self.pieces[number : number + 2]
        c = below.line.high
        x, y = below.line.at(c), above.line.at(c)
        if x == y:
            return None
        rise = torch.as_tensor(self.unit.rise(c, y, c, x))
        taller = select(rise > 0, above.density(above.cut.low), -below.density(below.cut.high))
        return taller * decrease(rise.abs())

    def jumps(self) -> tuple[list[Tensor], list[Tensor]]:
        """s J_k and s J_k α_k, or terms with the same sums: where x jumps at the edge c and back at d, the two J differ
        in sign and by the factor 𝒩(d; ω, V)/𝒩(c; ω, V), and the larger of them is multiplied by one less that."""
        unit, lines = self.unit, [piece.line for piece in self.pieces]
        all_edges = [(line.high, self.jump(number)) for number, line in enumerate(lines[:-1])]
        found = {c: jump for c, jump in all_edges if jump is not None}
        if len(found) == 2 == len(lines) - 1 and not lines[1].slope:
            (c, up), (d, down) = found.items()
            if lines[0].at(c) == lines[2].at(d):
                rise = torch.as_tensor(unit.rise(d, 0.0, c, 0.0))
                near = select(rise > 0, down, up)
                both, far = near * decrease(rise.abs()), select(rise > 0, unit.edge(c), unit.edge(d))
                return [both], [both * far, near * select(rise > 0, d - c, c - d) / unit.s]
        return list(found.values()), [jump * unit.edge(c) for c, jump in found.items()]

    def gradient(self) -> Tensor:
        """g, as above or as Σ p_j (z̄_j − ω)/V: where there are several terms, they may cancel in either."""
        terms = [piece.p * self.pull(piece) for piece in self.sloped()]
        terms += [jump / self.unit.s for jump in self.jumps()[0]]
        if len(terms) == 1:
            return terms[0]
        return _least([terms, [piece.p * self.shift(piece) / self.unit.s for piece in self.pieces]])

    def curvature(self) -> Tensor:
        """VΓ in the form with the smallest terms."""
        A, V, s = self.unit.A, self.unit.V, self.unit.s
        sloped = [(piece, piece.p, s * self.pull(piece)) for piece in self.sloped()]
        jumps, turns = self.jumps()
        smooth = added([p * c for _, p, c in sloped]) if sloped else torch.zeros_like(V)
        common = self.within(A * V)
        if jumps:
            total = added(jumps)
            common += [total * (2 * smooth), total * total, *(-turn for turn in turns)]
        pulls = {piece.line: c for piece, _, c in sloped}
        first = [-p * c * piece.cut.drift * piece.root for piece, p, c in sloped]
        for lower, upper, pp in self.pairs():
            if lower.line in pulls or upper.line in pulls:
                first.append(-pp * (pulls.get(lower.line, 0.0) - pulls.get(upper.line, 0.0)) ** 2)
        forms = [common + first, self.pinned()]
        if sloped and len(self.pieces) > 2:
            forms.append([*common, smooth * smooth, *(-p * c * self.shift(piece) for piece, p, c in sloped)])
        return _least(forms)

    def pinned(self) -> list[Tensor]:
        """The terms of VΓ in its last form."""
        AV = self.unit.A * self.unit.V
        terms = [piece.p * (piece.line.slope**2 * AV) / piece.r for piece in self.sloped()]
        terms += [piece.p * piece.cut.deficit / piece.r for piece in self.pieces]
        return terms + [-pp * self.apart(lower, upper, False).square() for lower, upper, pp in self.pairs()]


def _least(forms: list[list[Tensor]]) -> Tensor:
    """The sum of one of several lists of terms with the same sum: at each point of that with the smallest terms."""
    best, smallest = added(forms[0]), added([term.abs() for term in forms[0]])
    for terms in forms[1:]:
        size = added([term.abs() for term in terms])
        best, smallest = select(size < smallest, added(terms), best), torch.minimum(size, smallest)
    return best


def mixture(lines: Sequence[Line], unit: Unit, steepest: float, gain: Tensor) -> Mixture:
    """All pieces of a unit; ``gain`` is the floored 1 + a²AV of the steepest."""
    pieces = [make_piece(line, unit, steepest, gain) for line in lines]
    if len(pieces) > 1:
        pieces = [one._replace(p=p) for one, p in zip(pieces, probabilities(pieces, unit), strict=True)]
    return Mixture(unit, pieces)
