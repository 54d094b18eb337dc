// The start of a Cortex-M: its interrupt vectors, data from flash, zeros, the floating-point unit,
// and main.
#include "board.h"

extern uint32_t data_from[], data_begin[], data_end[], bss_begin[], bss_end[], stack_end[];
int main(int count, char **arguments);
void Reset_Handler(void);
void SysTick_Handler(void);

__attribute__((noreturn)) void Reset_Handler(void) {
    const uint32_t *from = data_from;
    for (volatile uint32_t *to = data_begin; to < data_end;) {
        *to++ = *from++;
    }
    for (volatile uint32_t *to = bss_begin; to < bss_end;) {
        *to++ = 0;
    }
#ifdef __ARM_FP
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20;
    __asm__ volatile("dsb\nisb");
#endif
    main(0, NULL);
    port_exit(0);
    for (;;) {
    }
}

__attribute__((weak)) void SysTick_Handler(void) {}

static void fault(void) {
    port_print("fault\n");
    port_exit(4);
}

typedef void (*handler)(void);

// The interrupts of devices, up to the last one that a board has, are those of its line.
enum { SYSTEM = 16, DEVICES = 4 };

__attribute__((section(".vectors"), used)) static const union {
    handler handler;
    uint32_t *stack;
} vectors[SYSTEM + DEVICES] = {
    {.stack = stack_end},
    {.handler = Reset_Handler},
    {.handler = fault},
    {.handler = fault},
    {.handler = fault},
    {.handler = fault},
    {.handler = fault},
    [11] = {.handler = fault},
    [12] = {.handler = fault},
    [14] = {.handler = fault},
    [15] = {.handler = SysTick_Handler},
    [16] = {.handler = board_interrupt},
    [17] = {.handler = board_interrupt},
    [18] = {.handler = board_interrupt},
    [19] = {.handler = board_interrupt},
};
