/* Start of a Cortex-M, and its instruction counter: SysTick, which QEMU drives by instructions (-icount). */
#include "semihosting.h"

extern char _stack[], _data[], _data_end[], _data_from[], _bss[];
int main(void);
void reset(void);

__attribute__((section(".vectors"), used)) static const void *const vectors[2] = {_stack, (const void *)reset};

static long semihost(long call, void *block)
{
  register long r0 __asm__("r0") = call;
  register void *r1 __asm__("r1") = block;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

#define SYSTICK ((volatile uint32_t *)0xe000e010)

static uint32_t ticks(void)
{
  return 0xffffff - SYSTICK[2];
}

/* Ticks of a loop of 20,000 instructions. */
static uint32_t scale;

uint32_t host_count(void)
{
  return (uint32_t)((uint64_t)ticks() * 20000 / scale);
}

void reset(void)
{
  char *p, *from = _data_from;
  uint32_t before, n = 10000;
  for (p = _data; p < _data_end; ++p)
    *p = *from++;
  for (p = _bss; p < _end; ++p)
    *p = 0;
#ifdef __ARM_FEATURE_MVE
  *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20; /* the vector unit is off after a reset */
#endif
  SYSTICK[1] = 0xffffff;
  SYSTICK[2] = 0;
  SYSTICK[0] = 5;
  while (!SYSTICK[2]) {
  }
  before = ticks();
  __asm__ volatile(".syntax unified\n1: subs %0, #1\n bne 1b" : "+l"(n) : : "cc");
  scale = ticks() - before;
  host_open();
  main();
}
