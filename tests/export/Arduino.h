/* What a sketch uses of Arduino's core, for a compiler that has none: Serial reads and writes nothing. */
#ifndef ARDUINO_H
#define ARDUINO_H

#include <math.h>
#include <stdint.h>

#ifdef __AVR__
#include <avr/pgmspace.h>
#else
#define PSTR(text) text
#endif

class __FlashStringHelper;
#define F(text) (reinterpret_cast<const __FlashStringHelper *>(PSTR(text)))

struct Stream {
  void begin(unsigned long) {}
  operator bool() const { return true; }
  int available() const { return 1; }
  long parseInt() { return *number; }
  float parseFloat() { return *number; }
  template <class T> void print(T) {}
  template <class T> void println(T) {}
  volatile long *number;
};
extern Stream Serial;
unsigned long micros(void);

#endif
