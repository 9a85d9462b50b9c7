/* What a program needs of the machine that emulates its board. */
#ifndef HOST_H
#define HOST_H

#include <stddef.h>
#include <stdint.h>

/* The next bytes of the input; 0 at its end. */
int host_read(void *to, size_t bytes);
void host_write(const void *from, size_t bytes);
/* Instructions since some time (cycles on AVR); only differences count. */
uint32_t host_count(void);
/* There is no more to be done. */
void host_end(void);
/* The end of static data, above which the stack grows down. */
extern char _end[];

#endif
