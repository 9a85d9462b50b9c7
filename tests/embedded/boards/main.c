/* Classes, confidences and scores of all samples of the input; then the self-test, and what one prediction takes. */
#include <string.h>
#include "host.h"
#include "net.h"

#define PAINT 0xa5
/* What lies between the caller's frame and the painted bytes. */
#define MARGIN 64

static net_input sample[NET_INPUTS];
static net_score scores[NET_OUTPUTS];

#ifndef HOSTED
static __attribute__((noinline)) void paint(void)
{
  volatile char here;
  char *p;
  const uintptr_t top = (uintptr_t)&here - MARGIN;
  for (p = _end; (uintptr_t)p < top; ++p)
    *(volatile char *)p = (char)PAINT;
}

/* Bytes of stack that were used since paint(), below the caller's frame. */
static __attribute__((noinline)) uint32_t used(const char *top)
{
  const volatile char *p = _end;
  while (p < top && *p == (char)PAINT)
    ++p;
  return (uint32_t)(top - (const char *)p);
}
#endif

int main(void)
{
  uint32_t cost[3] = {0, 0, 0};
  uint8_t out[3];
  int first = 1;
  while (host_read(sample, sizeof sample)) {
    net_scores(sample, scores);
    out[0] = (uint8_t)net_best(scores);
    out[1] = net_confidence(scores);
    out[2] = (uint8_t)net_reject(scores);
    if (first) {
      uint32_t before, after;
#ifndef HOSTED
      char here;
      paint();
#endif
      before = host_count();
      if (net_predict(sample) != out[0])
        out[0] = 255;
      after = host_count();
      cost[0] = after - before;
#ifndef HOSTED
      cost[1] = used(&here);
#endif
      first = 0;
    }
    host_write(out, sizeof out);
    host_write(scores, sizeof scores);
  }
  cost[2] = (uint32_t)net_selftest();
  host_write(cost, sizeof cost);
  host_end();
  return 0;
}
