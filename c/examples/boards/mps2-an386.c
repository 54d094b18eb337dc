// The Arm MPS2 board AN386, a Cortex-M4F, as QEMU emulates it: its serial line (UART) with the baud
// rate, and its clock.
#include "board.h"

#define UART ((volatile uint32_t *)0x40004000)
#define SYSTICK ((volatile uint32_t *)0xE000E010)
#define ENABLE_INTERRUPT ((volatile uint32_t *)0xE000E100)

enum { CLOCK_HZ = 25000000, BAUD = 115200 };
enum { DATA = 0, STATE = 1, CONTROL = 2, INTERRUPT = 3, BAUD_DIVIDER = 4 };
enum { TRANSMIT_FULL = 1, RECEIVE_FULL = 2 };

static volatile uint32_t milliseconds;

void SysTick_Handler(void);
void SysTick_Handler(void) { milliseconds = milliseconds + 1; }

uint32_t port_milliseconds(void) { return milliseconds; }

void board_start(void) {
    UART[BAUD_DIVIDER] = CLOCK_HZ / BAUD;
    // Both directions, and the interrupt of bytes that come in.
    UART[CONTROL] = 1 | 2 | 8;
    ENABLE_INTERRUPT[0] = 1;
    SYSTICK[1] = CLOCK_HZ / 1000 - 1;
    SYSTICK[0] = 7;
}

void board_interrupt(void) {
    UART[INTERRUPT] = 2;
    while ((UART[STATE] & RECEIVE_FULL) != 0) {
        queue_push((uint8_t)UART[DATA]);
    }
}

bool board_write(uint8_t byte) {
    bool has_room = (UART[STATE] & TRANSMIT_FULL) == 0;
    if (has_room) {
        UART[DATA] = byte;
    }
    return has_room;
}

// The page of the record is RAM in QEMU.
void board_clear(volatile uint32_t *word) { *word = 0; }

sf_random port_random(void) {
    const sf_random random = {NULL, host_random};
    return random;
}
