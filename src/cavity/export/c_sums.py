"""C99 for the first layer: Σ_i w_ki q_i of all units k, where w is a matrix of bits and q are whole numbers.

Eight inputs have 256 subset sums, and the bits of a unit's weights choose one of them. So one table serves all units,
and no input is ever multiplied. The matrix is laid out accordingly, with byte g of unit k at [g · units + k].

With AVX2, one shuffle looks up 32 units at once in tables of 16 bytes: the subset sums of the lower or upper four bits
of four inputs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Units are padded to a multiple of this, the bytes of an AVX2 register.
LANES = 32
#: Inputs whose tables are held at once.
CHUNK = 512


def padded(units: int) -> int:
    return -(-units // LANES) * LANES


def byte_rows(width: int) -> int:
    """Bytes for the bits of ``width`` inputs; even, because pairs are added before they are widened."""
    return 2 * -(-width // 16)


def columns_of(bits: NDArray[np.bool_], widths: list[int]) -> NDArray[np.uint8]:
    """Bits (units, inputs) → (byte rows, padded units); each group of ``widths`` inputs starts a new row."""
    parts, start = [], 0
    for width in widths:
        laid = np.zeros((padded(len(bits)), 8 * byte_rows(width)), bool)
        laid[: len(bits), :width] = bits[:, start : start + width]
        parts.append(np.packbits(laid, axis=1, bitorder="little").T)
        start += width
    return np.concatenate(parts)


def sums(p: str, P: str, units: int, pixels: bool) -> str:
    """The summing function; for pixels it also has an AVX2 version, used if ``fast``."""
    table, sum_type = ("uint16_t", "int32_t") if pixels else ("int64_t", "int64_t")
    shortcut = f"""#ifdef {P}_AVX2
  if (fast) {{
    {p}_sums_avx2(x, n, w, acc);
    return;
  }}
#endif
"""
    portable = f"""/* acc[k] += the sum of the n inputs whose bit is set in column k of w. */
{P}_INLINE void {p}_sums(const {p}_input *x, int n, const uint8_t *w, {sum_type} *acc, int fast)
{{
  int g, b, j, k;
{shortcut if pixels else ""}  (void)fast;
  for (g = 0; 8 * g < n; ++g) {{
    {table} t[256] = {{0}};
    for (b = 0; b < 8 && 8 * g + b < n; ++b)
      for (j = 0; j < 1 << b; ++j)
        t[(1 << b) + j] = ({table})(t[j] + x[8 * g + b]);
    for (k = 0; k < {units}; ++k)
      acc[k] += t[w[g * {units} + k]];
  }}
}}
"""
    return _avx2(p, P, units) + "\n" + portable if pixels else portable


def _avx2(p: str, P: str, units: int) -> str:
    return f"""#ifdef {P}_AVX2
#include <immintrin.h>

/* The 16 subset sums of four numbers. */
__attribute__((target("avx2"))) static inline __m128i {p}_subsets(int a, int b, int c, int d)
{{
  const __m128i low = _mm_add_epi8(_mm_and_si128(_mm_set1_epi16((short)0xff00), _mm_set1_epi8((char)a)),
                                   _mm_and_si128(_mm_set1_epi32((int)0xffff0000u), _mm_set1_epi8((char)b)));
  const __m128i high = _mm_add_epi8(_mm_and_si128(_mm_setr_epi32(0, -1, 0, -1), _mm_set1_epi8((char)c)),
                                    _mm_and_si128(_mm_setr_epi32(0, 0, -1, -1), _mm_set1_epi8((char)d)));
  return _mm_add_epi8(low, high);
}}

__attribute__((target("avx2"))) static inline __m256i {p}_look_up(const __m128i *table, __m256i index)
{{
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(table)), index);
}}

/* As below, 32 units at once: an input is 16 h + l; sums of h and of l over four inputs are at most 60. */
__attribute__((target("avx2"))) static void {p}_sums_avx2(const uint8_t *x, int n, const uint8_t *w, int32_t *acc)
{{
  const __m256i nibble = _mm256_set1_epi8(15), zero = _mm256_setzero_si256();
  int start, i, g, k, r;
  for (start = 0; start < n; start += {CHUNK}) {{
    uint8_t s[{CHUNK}] = {{0}};
    __m128i tables[{CHUNK // 2}];
    const int size = n - start < {CHUNK} ? n - start : {CHUNK};
    const int rows = (size + 15) / 16 * 2;
    memcpy(s, x + start, (size_t)size);
    for (i = 0; i < 2 * rows; ++i) {{
      const uint8_t *const q = s + 4 * i;
      tables[2 * i] = {p}_subsets(q[0] & 15, q[1] & 15, q[2] & 15, q[3] & 15);
      tables[2 * i + 1] = {p}_subsets(q[0] >> 4, q[1] >> 4, q[2] >> 4, q[3] >> 4);
    }}
    for (k = 0; k < {units}; k += {LANES}) {{
      const uint8_t *const column = w + start / 8 * {units} + k;
      __m256i sum[4];
      uint16_t l[{LANES}], h[{LANES}];
      for (i = 0; i < 4; ++i)
        sum[i] = zero;
      for (g = 0; g < rows; g += 2) {{
        __m256i lower = zero, upper = zero;
        for (r = g; r < g + 2; ++r) {{
          const __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)(column + r * {units}));
          const __m256i first = _mm256_and_si256(bits, nibble);
          const __m256i second = _mm256_and_si256(_mm256_srli_epi16(bits, 4), nibble);
          lower = _mm256_add_epi8(lower, {p}_look_up(tables + 4 * r, first));
          upper = _mm256_add_epi8(upper, {p}_look_up(tables + 4 * r + 1, first));
          lower = _mm256_add_epi8(lower, {p}_look_up(tables + 4 * r + 2, second));
          upper = _mm256_add_epi8(upper, {p}_look_up(tables + 4 * r + 3, second));
        }}
        sum[0] = _mm256_add_epi16(sum[0], _mm256_unpacklo_epi8(lower, zero));
        sum[1] = _mm256_add_epi16(sum[1], _mm256_unpackhi_epi8(lower, zero));
        sum[2] = _mm256_add_epi16(sum[2], _mm256_unpacklo_epi8(upper, zero));
        sum[3] = _mm256_add_epi16(sum[3], _mm256_unpackhi_epi8(upper, zero));
      }}
      _mm256_storeu_si256((__m256i *)(void *)l, _mm256_permute2x128_si256(sum[0], sum[1], 0x20));
      _mm256_storeu_si256((__m256i *)(void *)(l + 16), _mm256_permute2x128_si256(sum[0], sum[1], 0x31));
      _mm256_storeu_si256((__m256i *)(void *)h, _mm256_permute2x128_si256(sum[2], sum[3], 0x20));
      _mm256_storeu_si256((__m256i *)(void *)(h + 16), _mm256_permute2x128_si256(sum[2], sum[3], 0x31));
      for (i = 0; i < {LANES}; ++i)
        acc[k + i] += l[i] + 16 * h[i];
    }}
  }}
}}
#endif
"""
