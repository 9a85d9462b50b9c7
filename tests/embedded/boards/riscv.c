/* Start of a 32-bit RISC-V. */
#include "semihosting.h"

int main(void);

__attribute__((naked, section(".start"), used)) void start(void)
{
  __asm__ volatile("la sp, _stack\n call begin");
}

static long semihost(long call, void *block)
{
  register long a0 __asm__("a0") = call;
  register void *a1 __asm__("a1") = block;
  /* These three instructions together, none of them compressed, are the call. */
  __asm__ volatile(".option push\n.option norvc\n.balign 16\nslli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
                   : "+r"(a0)
                   : "r"(a1)
                   : "memory");
  return a0;
}

uint32_t host_count(void)
{
  uint32_t n;
  __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, minstret\n.option pop" : "=r"(n));
  return n;
}

__attribute__((used)) void begin(void)
{
  host_open();
  main();
}
