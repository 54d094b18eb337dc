// QEMU's virtual RISC-V board: its start, its interrupts (PLIC), its serial line (a 16550 UART),
// and its clock.
#include "board.h"

#define UART ((volatile uint8_t *)0x10000000)
#define PLIC ((volatile uint32_t *)0x0C000000)
#define TIME ((volatile uint32_t *)0x0200BFF8)

enum { DATA = 0, INTERRUPTS = 1, FIFO = 2, LINE = 3, STATE = 5 };
enum { RECEIVE_READY = 1, TRANSMIT_EMPTY = 32, UART_INTERRUPT = 10 };
// Words of the interrupt controller, for machine mode of the first processor.
enum { ENABLE = 0x2000 / 4, THRESHOLD = 0x200000 / 4, CLAIM = 0x200004 / 4 };
enum { TICKS_PER_MILLISECOND = 10000 };

extern uint32_t bss_begin[], bss_end[], data_from[], data_begin[], data_end[];
int main(int count, char **arguments);

__attribute__((interrupt("machine"), aligned(4))) static void trap(void) {
    uint32_t cause;
    __asm__ volatile(".option arch, +zicsr\ncsrr %0, mcause" : "=r"(cause));
    if ((cause >> 31) == 0) {
        port_print("fault\n");
        port_exit(4);
    }
    uint32_t device = PLIC[CLAIM];
    board_interrupt();
    PLIC[CLAIM] = device;
}

__attribute__((used)) static void begin(void) {
    const uint32_t *from = data_from;
    for (volatile uint32_t *to = data_begin; to < data_end;) {
        *to++ = *from++;
    }
    for (volatile uint32_t *to = bss_begin; to < bss_end;) {
        *to++ = 0;
    }
    main(0, NULL);
    port_exit(0);
}

__attribute__((naked, section(".start"))) void start(void);
__attribute__((naked, section(".start"))) void start(void) {
    __asm__ volatile("la sp, stack_end\nj begin");
}

void board_start(void) {
    // Eight bits, no parity, the queues on, and the interrupt of bytes that come in.
    UART[LINE] = 3;
    UART[FIFO] = 1;
    UART[INTERRUPTS] = 1;
    PLIC[UART_INTERRUPT] = 1;
    PLIC[ENABLE] = 1 << UART_INTERRUPT;
    PLIC[THRESHOLD] = 0;
    // The handler, interrupts of devices, and all interrupts.
    __asm__ volatile(".option arch, +zicsr\ncsrw mtvec, %0\ncsrs mie, %1\ncsrsi mstatus, 8"
                     :
                     : "r"(trap), "r"(1 << 11));
}

void board_interrupt(void) {
    while ((UART[STATE] & RECEIVE_READY) != 0) {
        queue_push(UART[DATA]);
    }
}

uint32_t port_milliseconds(void) {
    for (;;) {
        uint32_t high = TIME[1], low = TIME[0];
        if (high == TIME[1]) {
            uint64_t ticks = (uint64_t)high << 32 | low;
            return (uint32_t)(ticks / TICKS_PER_MILLISECOND);
        }
    }
}

bool board_write(uint8_t byte) {
    bool has_room = (UART[STATE] & TRANSMIT_EMPTY) != 0;
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
