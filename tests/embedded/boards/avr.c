/* An AVR in simavr: three general-purpose registers are wired to the emulating machine (avr_host.c). */
#include <avr/io.h>
#include "host.h"

int host_read(void *to, size_t bytes)
{
  uint8_t *p = to;
  GPIOR2 = 1;
  if (!GPIOR2)
    return 0;
  while (bytes--)
    *p++ = GPIOR0;
  return 1;
}

void host_write(const void *from, size_t bytes)
{
  const uint8_t *p = from;
  while (bytes--)
    GPIOR1 = *p++;
}

void host_end(void)
{
  GPIOR2 = 3;
}

uint32_t host_count(void)
{
  uint32_t n = 0;
  uint8_t k;
  GPIOR2 = 2;
  for (k = 0; k < 4; ++k)
    n |= (uint32_t)GPIOR0 << 8 * k;
  return n;
}
