/* A Cortex-M4 under QEMU: it starts, reads stream.bin (samples, each followed by its label) through semihosting, learns
 * from it, and writes answers.bin: class, whether it learnt and ticks of both for each sample, then the state. */
#include <stdint.h>

#include "net_learn.h"

#define WORD(address) (*(volatile uint32_t *)(address))
enum { SYS_OPEN = 1, SYS_WRITE = 5, SYS_READ = 6, SYS_EXIT = 0x18, READ_BINARY = 1, WRITE_BINARY = 5, STOPPED = 0x20026 };

extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[];
static net_state state;

static int host(int operation, const void *argument)
{
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

static uint32_t file(const char *name, uint32_t mode, uint32_t length)
{
  const uint32_t call[3] = {(uint32_t)name, mode, length};
  return (uint32_t)host(SYS_OPEN, call);
}

static int transfer(int operation, uint32_t handle, const void *data, uint32_t size)
{
  const uint32_t call[3] = {handle, (uint32_t)data, size};
  return host(operation, call);
}

/* SysTick counts down 24 bits. */
static uint32_t since(uint32_t before)
{
  return (before - WORD(0xE000E018)) & 0xFFFFFF;
}

static void run(void)
{
  static struct {
    uint8_t sample[NET_INPUTS], label;
  } given;
  const uint32_t in = file("stream.bin", READ_BINARY, 10), out = file("answers.bin", WRITE_BINARY, 11);
  WORD(0xE000E014) = 0xFFFFFF;
  WORD(0xE000E018) = 0;
  WORD(0xE000E010) = 5;
  net_state_init(&state);
  while (transfer(SYS_READ, in, &given, sizeof given) == 0) {
    uint32_t answer[4], start = WORD(0xE000E018);
    answer[0] = (uint32_t)net_predict_state(&state, given.sample);
    answer[2] = since(start);
    start = WORD(0xE000E018);
    answer[1] = (uint32_t)net_learn(&state, given.sample, given.label);
    answer[3] = since(start);
    transfer(SYS_WRITE, out, answer, sizeof answer);
  }
  transfer(SYS_WRITE, out, &state, sizeof state);
}

void reset(void)
{
  uint32_t *from = data_load, *to;
  for (to = data_start; to < data_end; ++to)
    *to = *from++;
  for (to = bss_start; to < bss_end; ++to)
    *to = 0;
  run();
  host(SYS_EXIT, (const void *)STOPPED);
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {(void *)0x20400000, (void *)reset};
