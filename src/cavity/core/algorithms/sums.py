"""Sums over the edges of a layer: B on its inputs and H on its weights.

    B_in = Σ_k m_ki g_kn,        H_ki = Σ_n x̂_in g_kn                                                full sums
    B_in = Σ_k m_ki g_{kn→i},    H_ki = Σ_n x̂_in g_{kn→i},    g_{kn→i} = ∂_ω φ(ω_kn − m_ki x̂_in, V_kn)    cavity sums

Cavity sums, where every edge sees its factor without itself, are the only costly step of BPI, and of BP in its first
iteration: one transcendental function on every edge of every sample. ``exact_sums`` evaluates them as written, in
chunks, so that no (samples, outputs, inputs) tensor is ever held; ``series.py`` gives the same for a few matrix
products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cavity.core.arithmetic import as_is
from cavity.core.couplings.base import Coupling
from cavity.core.messages import Fields, Preactivation, Target
from cavity.core.state import Factor, Site

#: Edges evaluated at once: little memory, and many enough to hide the cost of a call.
CHUNK_EDGES = 1 << 22
#: The same where several numbers of every edge are read and written, so that they stay in the cache: twice as fast.
CACHED_EDGES = 1 << 18

#: What may compile the function that is evaluated on every chunk.
Fuse = Callable[[Callable[..., Any]], Callable[..., Any]]


class Sums(NamedTuple):
    """B (samples, *input_shape), None if nobody below asks for it, and H (outputs, columns)."""

    inputs: Tensor | None
    weights: Tensor


def full_sums(site: Site, g: Tensor, m: Tensor, x: Tensor) -> Sums:
    """B_in = Σ_k m_ki g_kn and H_ki = Σ_n x̂_in g_kn."""
    B = None if site.below is None else site.coupling.back_to_inputs(m, g)
    return Sums(B, site.coupling.back_to_weights(g, x))


def row_chunks(rows: int, edges_per_row: int, at_once: int = CHUNK_EDGES) -> Iterator[slice]:
    """Slices over the factors with at most ``at_once`` edges each."""
    step = max(1, at_once // max(1, edges_per_row))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def chunk_sums(
    gradient: Callable[[Any, Preactivation], Tensor],
    message: Fields | Target,
    pre: Preactivation,
    m: Tensor,
    X: Tensor,
    counted: Tensor,
    H: Tensor,
) -> tuple[Tensor, Tensor]:
    """B (rows, columns) and H with what these factors add, for message and (ω, V) of shape (rows, outputs, 1), m and H
    (outputs, columns) and X (rows, columns), once as it is and once as often as each factor counts.

    Products and sums, not contractions, because they are fused. B is formed even where nobody asks for it: with one use
    alone, g would be folded into its sum, which takes longer than storing it.
    """
    x = X.unsqueeze(1)
    g = gradient(message, Preactivation(pre.mean - m * x, pre.variance))
    return (g * m).sum(dim=1), H + (g * counted.unsqueeze(1)).sum(dim=0)


def exact_sums(
    coupling: Coupling,
    factor: Factor,
    m: Tensor,
    x: Tensor,
    want_inputs: bool,
    columns: Tensor | None = None,
    fuse: Fuse = as_is,
) -> Sums:
    """B and H from means m (outputs, columns) and x̂ (samples, *input_shape), edge by edge; of a sparse layer only the
    edges in ``columns`` (outputs, d), and H is 0 elsewhere."""
    X = coupling.with_constant(coupling.gather(x), 1.0)
    counted = coupling.counted(X)
    factor = factor.by_edge(coupling)
    if columns is not None:
        B, H = sparse_sums(factor, m, X, counted, columns, fuse)
        return Sums(coupling.scatter(coupling.without_constant(B)) if want_inputs else None, H)
    H, parts = torch.zeros_like(m), []
    evaluate = fuse(chunk_sums)
    for rows in row_chunks(len(X), m.numel()):
        part = factor.chunk(rows)
        B_rows, H = evaluate(part.channel.gradient, part.message, part.pre, m, X[rows], counted[rows], H)
        parts.append(B_rows)
    return Sums(coupling.scatter(coupling.without_constant(torch.cat(parts))) if want_inputs else None, H)


def edge_fields(
    gradient: Callable[[Any, Preactivation], Tensor],
    message: Fields | Target,
    pre: Preactivation,
    m: Tensor,
    X: Tensor,
    counted: Tensor,
    columns: Tensor,
    H: Tensor,
) -> tuple[Tensor, Tensor]:
    """m g of each edge (rows, outputs, d), and H with what these factors add, for m and H (outputs, d)."""
    x = X[:, columns]
    g = gradient(message, Preactivation(pre.mean - m * x, pre.variance))
    return g * m, H + (g * counted[:, columns]).sum(dim=0)


def sparse_sums(
    factor: Factor, m: Tensor, X: Tensor, counted: Tensor, columns: Tensor, fuse: Fuse
) -> tuple[Tensor, Tensor]:
    """``chunk_sums`` over the edges in ``columns`` alone: B (rows, columns) and H (outputs, columns). The column that
    fills up short rows is one of zeros, here appended and in the end dropped."""
    X, counted, m = (torch.nn.functional.pad(tensor, (0, 1)) for tensor in (X, counted, m))
    kept = m.gather(1, columns)
    H, B = torch.zeros_like(kept), torch.zeros_like(X)
    evaluate = fuse(edge_fields)
    for rows in row_chunks(len(X), columns.numel()):
        part = factor.chunk(rows)
        to_inputs, H = evaluate(part.channel.gradient, part.message, part.pre, kept, X[rows], counted[rows], columns, H)
        B[rows] = B[rows].index_add(1, columns.flatten(), to_inputs.flatten(1))
    return B[:, :-1], torch.zeros_like(m).scatter(1, columns, H)[:, :-1]
