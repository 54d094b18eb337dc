// The functions of a board that the example calls: serial line, flash of the ledger, random
// generator, clock, provisioning record and console. Each board has a file with these functions.
#ifndef PORT_H
#define PORT_H

#include "smolfed.h"

// Starts the line and the clock. A board without arguments ignores them.
void port_start(int count, char **arguments);

// The provisioning record, at a multiple of four bytes.
const uint8_t *port_record(size_t *bytes);

// Overwrites bytes of the record with zeros, so that they are gone after the next start as well.
void port_forget(size_t at, size_t count);

// Flash of the ledger, and the random generator.
sf_flash port_flash(void);
sf_random port_random(void);

// Flash with this many pages for the models of a device that only infers. Ports for training only
// need neither.
sf_flash port_models(uint32_t pages);
uint32_t port_page_bytes(void);

// The line: how many bytes it took, and how many came in.
size_t port_write(const uint8_t *bytes, size_t count);
size_t port_read(uint8_t *bytes, size_t room);

// Milliseconds since the start.
uint32_t port_milliseconds(void);

// Waits until a byte comes in, or for some milliseconds.
void port_sleep(uint32_t milliseconds);

// Prints a text, and the end of the program.
void port_print(const char *text);
void port_exit(int code);

#endif
