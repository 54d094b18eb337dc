// Functions that the emulated boards share (queue of received bytes, calls to the host, random
// bytes of the host), and those that each board implements.
#ifndef BOARD_H
#define BOARD_H

#include "../port.h"

// Calls the host of an emulated board (semihosting).
int32_t semihost(int32_t operation, const void *arguments);

// Random bytes of the host, for boards without a generator. No product may do without one.
void host_random(void *context, uint8_t *to, size_t count);

// Opens the file of the ledger, or of the models.
void host_start(void);

// Puts a byte of the line into the queue, in the interrupt that it raises.
void queue_push(uint8_t byte);

// What each board has: the program's start calls both, and the interrupt of the line is the second.
void board_start(void);
void board_interrupt(void);

// Whether the line takes another byte, which it is given then.
bool board_write(uint8_t byte);

// Writes zero to a word of the provisioning record.
void board_clear(volatile uint32_t *word);

#endif
