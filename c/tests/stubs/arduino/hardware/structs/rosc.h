#ifndef ROSC_H
#define ROSC_H
#include <stdint.h>

// Each read of the register is a new bit.
struct RandomBit {
  operator uint32_t() const;
};
struct rosc_hw_t {
  RandomBit randombit;
};
extern rosc_hw_t ring_oscillator;
#define rosc_hw (&ring_oscillator)
#endif
