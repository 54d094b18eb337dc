// The BBC micro:bit, version 1 (nRF51822, a Cortex-M0): its serial line (UART), clock and random
// number generator. Nordic's reference manual has the registers.
#include "board.h"

static volatile uint32_t *at(uint32_t address) { return (volatile uint32_t *)address; }

enum { CLOCK = 0x40000000, UART = 0x40002000, TIMER = 0x40008000, RNG = 0x4000D000 };
enum { FLASH = 0x4001E000, UART_INTERRUPT = 2 };
static const uint32_t ENABLE_INTERRUPT = 0xE000E100;

static bool is_sending;

void board_start(void) {
    // The crystal, so that the baud rate is exact.
    *at(CLOCK) = 1;
    // Pins of the connector to the USB interface, at 115,200 baud.
    *at(UART + 0x50C) = 24;
    *at(UART + 0x514) = 25;
    *at(UART + 0x524) = 0x01D7E000;
    *at(UART + 0x500) = 4;
    // The interrupt of bytes that come in.
    *at(UART + 0x304) = 1 << 2;
    *at(UART + 0x000) = 1;
    *at(UART + 0x008) = 1;
    *at(ENABLE_INTERRUPT) = 1 << UART_INTERRUPT;
    // 16 MHz / 2^9 = 31,250 Hz, 32 bits.
    *at(TIMER + 0x510) = 9;
    *at(TIMER + 0x508) = 3;
    *at(TIMER + 0x000) = 1;
}

uint32_t port_milliseconds(void) {
    *at(TIMER + 0x040) = 1;
    uint32_t ticks = *at(TIMER + 0x540);
    // Four milliseconds are 125 ticks.
    return ticks / 125 * 4 + ticks % 125 * 4 / 125;
}

void board_interrupt(void) {
    while (*at(UART + 0x108) != 0) {
        *at(UART + 0x108) = 0;
        queue_push((uint8_t)*at(UART + 0x518));
    }
}

bool board_write(uint8_t byte) {
    if (is_sending && *at(UART + 0x11C) == 0) {
        return false;
    }
    *at(UART + 0x11C) = 0;
    is_sending = true;
    *at(UART + 0x51C) = byte;
    return true;
}

// Zeros in flash need no erase.
void board_clear(volatile uint32_t *word) {
    *at(FLASH + 0x504) = 1;
    *word = 0;
    while (*at(FLASH + 0x400) == 0) {
    }
    *at(FLASH + 0x504) = 0;
}

// The generator of the hardware, with its correction of bias.
static void fill(void *context, uint8_t *to, size_t count) {
    (void)context;
    *at(RNG + 0x504) = 1;
    for (size_t byte = 0; byte < count; byte++) {
        *at(RNG + 0x100) = 0;
        *at(RNG + 0x000) = 1;
        while (*at(RNG + 0x100) == 0) {
        }
        to[byte] = (uint8_t)*at(RNG + 0x508);
    }
    *at(RNG + 0x004) = 1;
}

sf_random port_random(void) {
    const sf_random random = {NULL, fill};
    return random;
}
