"""A network as C99: one header and one source, constant weights, no heap, no floating point, no global state.

The first layer looks up sums of inputs in small tables (``c_sums.py``); the others use XNOR and popcount on 64-bit
words. On x86 with GCC or Clang, AVX2 and popcount instructions are used if the processor has them, whatever the source
was compiled for; ``-D<PREFIX>_PORTABLE`` leaves out everything that is not C99.
"""

from __future__ import annotations

import numpy as np

from cavity.export import c_sums, c_text
from cavity.export.c_sums import byte_rows, columns_of, padded
from cavity.packed.description import FRACTION_BITS, Description, Weights, word_count, words_of
from cavity.util.version import __version__

NARROW = 1 << 31
#: The header lists the mean and std of real inputs up to this many features.
LISTED_FEATURES = 1024


def generate(net: Description, prefix: str, header_name: str) -> tuple[str, str]:
    """Header and source with all names prefixed; the source includes the header by ``header_name``."""
    writer = _Writer(net, c_text.checked_prefix(prefix))
    return writer.header(), writer.source(c_text.checked_file_name(header_name))


class _Writer:
    """The texts of one network; ``P`` is the prefix of macros, ``p`` that of everything else."""

    def __init__(self, net: Description, prefix: str) -> None:
        self.net, self.p, self.P = net, prefix, prefix.upper()
        self.widths = [[width for width, _ in net.inputs.groups]] + [[layer.shape[1]] for layer in net.layers[1:]]
        self.words = [word_count(layer.shape[1]) for layer in net.layers]
        self.units = padded(net.sizes[1])
        # Twice, because 2 Σ_{w=+1} q − Σ q passes through twice its largest value.
        wide_sums = 2 * net.inputs.largest_sum >= NARROW
        self.wide_scores = (net.inputs.largest_sum << net.shift) + int(np.abs(net.offsets).max()) >= NARROW
        self.pixels, self.masked = net.inputs.kind == "pixels", net.layers[0].mask is not None
        # Bits of the numbers in C.
        self.sum_bits = 32 if self.pixels else 64
        self.total_bits = 64 if self.wide_scores or wide_sums else 32
        self.score_bits = 64 if len(net.layers) == 1 and self.wide_scores else 32

    def header(self) -> str:
        p, P, net = self.p, self.P, self.net
        names = f"\n/* Class names in UTF-8. */\nextern const char *const {p}_classes[{P}_CLASSES];\n"
        rule = "class 1 where it is >= 0, else class 0" if net.output == "label" else "the first largest one wins"
        return f"""/* Written by cavity {__version__}: network {"-".join(map(str, net.sizes))}, one bit per weight.
 * No heap, no floating point, no global state; {self.stack()} bytes of stack for intermediate results.
 * {self.about_inputs()}
 */
#ifndef {P}_H
#define {P}_H

#include <stdint.h>

#define {P}_INPUTS {net.inputs.features}
#define {P}_OUTPUTS {net.sizes[-1]}
#define {P}_CLASSES {net.n_classes}

#ifdef __cplusplus
extern "C" {{
#endif

typedef {"uint8_t" if self.pixels else "int32_t"} {p}_input;
typedef int{self.score_bits}_t {p}_score;
{names if net.classes else ""}
/* The class of one sample, 0 to {net.n_classes - 1}. */
int {p}_predict(const {p}_input *sample);

/* The scores of the last layer: {rule}. */
void {p}_scores(const {p}_input *sample, {p}_score *scores);

#ifdef __cplusplus
}}
#endif

#endif
"""

    def about_inputs(self) -> str:
        inputs = self.net.inputs
        if self.pixels:
            return f"A sample is {inputs.features} pixels from 0 to {inputs.white}, unscaled."
        assert inputs.mean is not None
        assert inputs.std is not None
        formula = f"round((x - mean) / std * {1 << FRACTION_BITS}), halves to even, cut to 32 bits"
        text = f"A sample is {inputs.features} numbers {formula}"
        if len(inputs.mean) > LISTED_FEATURES:
            return f"{text}; mean and std are those of the training data."
        pairs = zip(inputs.mean.tolist(), inputs.std.tolist(), strict=True)
        listed = "".join(f"\n *   {mean!r} {std!r}" for mean, std in pairs)
        return f"{text}; mean and std of {'each feature' if len(inputs.mean) > 1 else 'all features'}:{listed}"

    def stack(self) -> int:
        """Bytes of the arrays on the stack."""
        tables = 9 * c_sums.CHUNK if self.pixels else 8 * 256
        sums = self.total_bits * self.net.sizes[1] + (1 + self.masked) * self.sum_bits * self.units
        return (sums + self.score_bits * self.net.sizes[-1]) // 8 + tables + 8 * sum(self.words[1:])

    def source(self, header_name: str) -> str:
        p, P = self.p, self.P
        constants = [self.constants(number, layer) for number, layer in enumerate(self.net.layers)]
        classes = ",\n  ".join(map(c_text.string, self.net.classes))
        names = f"const char *const {p}_classes[{P}_CLASSES] = {{\n  {classes}\n}};\n" if classes else ""
        layers = [self.first(), *(self.above(number) for number in range(1, len(self.net.layers)))]
        sums = c_sums.sums(p, P, self.units, self.pixels)
        parts = [self.preamble(header_name), names, *constants, sums, *layers, self.run()]
        return "\n".join(part for part in parts if part)

    def preamble(self, header_name: str) -> str:
        p, P = self.p, self.P
        return f"""/* Written by cavity {__version__}; see {header_name}. */
#include "{header_name}"

#include <string.h>

#if defined(__GNUC__) && !defined({P}_PORTABLE)
#define {P}_INLINE static inline __attribute__((always_inline))
#define {P}_BUILTIN 1
#if defined(__x86_64__) || defined(__i386__)
#define {P}_AVX2 1
#endif
#else
#define {P}_INLINE static inline
#define {P}_BUILTIN 0
#endif

/* Bits set in a word; `fast` is a constant wherever this is inlined. */
{P}_INLINE int {p}_ones(uint64_t v, int fast)
{{
#if {P}_BUILTIN
  if (fast)
    return __builtin_popcountll(v);
#else
  (void)fast;
#endif
  v -= (v >> 1) & 0x5555555555555555u;
  v = (v & 0x3333333333333333u) + ((v >> 2) & 0x3333333333333333u);
  v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (int)((v * 0x0101010101010101u) >> 56);
}}
"""

    def constants(self, number: int, layer: Weights) -> str:
        """The arrays of one layer; base scores that are the same for all units need no array."""
        p, widths = self.p, self.widths[number]
        planes = {"sign": layer.sign if layer.mask is None else layer.sign & layer.mask, "mask": layer.mask}
        there = {f"{p}_{name}{number}": bits for name, bits in planes.items() if bits is not None}
        if number == 0:
            text = "".join(c_text.array("uint8_t", name, columns_of(bits, widths)) for name, bits in there.items())
            return text + c_text.array(f"int{64 if self.wide_scores else 32}_t", f"{p}_offset", self.net.offsets)
        text = "".join(c_text.array("uint64_t", name, words_of(bits, widths)) for name, bits in there.items())
        return text if self.constant_base(number) else text + c_text.array("int32_t", f"{p}_base{number}", layer.base)

    def constant_base(self, number: int) -> bool:
        base = self.net.layers[number].base
        return bool((base == base[0]).all())

    def first(self) -> str:
        """The first layer: sums of inputs, all units at once, then scores."""
        p, P, net = self.p, self.P, self.net
        out_type, keep = self.keep(0)
        total, sum_type = f"int{self.total_bits}_t", f"int{self.sum_bits}_t"
        body, start, row = "", 0, 0
        for width, factor in net.inputs.groups:
            place = f"sample + {start}, {width}"
            body += "  memset(chosen, 0, sizeof chosen);\n"
            body += f"  {p}_sums({place}, {p}_sign0 + {row * self.units}, chosen, fast);\n"
            if self.masked:
                body += "  memset(all, 0, sizeof all);\n"
                body += f"  {p}_sums({place}, {p}_mask0 + {row * self.units}, all, fast);\n"
            else:
                body += f"  all = 0;\n  for (k = 0; k < {width}; ++k)\n    all += sample[{start} + k];\n"
            body += f"  for (k = 0; k < {net.sizes[1]}; ++k)\n"
            body += f"    total[k] += {factor} * (({total})2 * chosen[k] - all{'[k]' if self.masked else ''});\n"
            start, row = start + width, row + byte_rows(width)
        return f"""{P}_INLINE void {p}_layer0(const {p}_input *sample, {out_type} *out, int fast)
{{
  {total} total[{net.sizes[1]}] = {{0}};
  {sum_type} chosen[{self.units}];
  {sum_type} all{f"[{self.units}]" if self.masked else ""};
  int k;
{body}  for (k = 0; k < {net.sizes[1]}; ++k) {{
    const {total} s = total[k] * (({total})1 << {net.shift}) - {p}_offset[k];
{keep}
  }}
}}
"""

    def above(self, number: int) -> str:
        p, P, layer, words = self.p, self.P, self.net.layers[number], self.words[number]
        out_type, keep = self.keep(number)
        base = str(layer.base[0]) if self.constant_base(number) else f"{p}_base{number}[k]"
        apart = f"x[j] ^ {p}_sign{number}[k * {words} + j]"
        if layer.mask is not None:
            apart = f"({apart}) & {p}_mask{number}[k * {words} + j]"
        return f"""{P}_INLINE void {p}_layer{number}(const uint64_t *x, {out_type} *out, int fast)
{{
  int k, j;
  for (k = 0; k < {layer.shape[0]}; ++k) {{
    int apart = 0;
    int32_t s;
    for (j = 0; j < {words}; ++j)
      apart += {p}_ones({apart}, fast);
    s = {base} - {2 << layer.shift} * apart;
{keep}
  }}
}}
"""

    def keep(self, number: int) -> tuple[str, str]:
        """The type of a layer's results, and how one is kept: the score itself, or its sign as a bit."""
        if number == len(self.net.layers) - 1:
            return f"{self.p}_score", f"    out[k] = ({self.p}_score)s;"
        bit = "    if (k % 64 == 0)\n      out[k / 64] = 0;\n    out[k / 64] |= (uint64_t)(s >= 0) << (k % 64);"
        return "uint64_t", bit

    def run(self) -> str:
        p, P, count = self.p, self.P, len(self.net.layers)
        arrays = "".join(f"  uint64_t x{number}[{self.words[number]}];\n" for number in range(1, count))
        names = ["sample", *(f"x{number}" for number in range(1, count)), "scores"]
        calls = "".join(f"  {p}_layer{n}({names[n]}, {names[n + 1]}, fast);\n" for n in range(count))
        counters, decide = "", "  return scores[0] >= 0;\n"
        if self.net.output == "argmax":
            counters = "  int k, best = 0;\n"
            decide = f"""  for (k = 1; k < {P}_OUTPUTS; ++k)
    if (scores[k] > scores[best])
      best = k;
  return best;
"""
        return f"""{P}_INLINE void {p}_run(const {p}_input *sample, {p}_score *scores, int fast)
{{
{arrays}{calls}}}

#ifdef {P}_AVX2
__attribute__((target("avx2,popcnt"))) static void {p}_run_fast(const {p}_input *sample, {p}_score *scores)
{{
  {p}_run(sample, scores, 1);
}}
#endif

void {p}_scores(const {p}_input *sample, {p}_score *scores)
{{
#ifdef {P}_AVX2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"))
    {p}_run_fast(sample, scores);
  else
    {p}_run(sample, scores, 0);
#else
  {p}_run(sample, scores, 1);
#endif
}}

int {p}_predict(const {p}_input *sample)
{{
  {p}_score scores[{P}_OUTPUTS];
{counters}  {p}_scores(sample, scores);
{decide}}}
"""
