// The serial line of an emulated board, its queue between the interrupt and the program with the
// queue's size, and its provisioning record.
#include "board.h"

// Bytes that came in: one interrupt writes, and the program reads.
enum { QUEUE = 512 };
static volatile uint8_t queue[QUEUE];
static volatile uint32_t written, taken;

// A full queue loses the byte: the frame is sent again.
void queue_push(uint8_t byte) {
    if (written - taken < QUEUE) {
        queue[written % QUEUE] = byte;
        written = written + 1;
    }
}

size_t port_read(uint8_t *bytes, size_t room) {
    size_t count = 0;
    while (count < room && taken != written) {
        bytes[count++] = queue[taken % QUEUE];
        taken = taken + 1;
    }
    return count;
}

size_t port_write(const uint8_t *bytes, size_t count) {
    size_t sent = 0;
    while (sent < count && board_write(bytes[sent])) {
        sent++;
    }
    return sent;
}

void port_sleep(uint32_t duration) {
    uint32_t start = port_milliseconds();
    while (port_milliseconds() - start < duration && taken == written) {
        __asm__ volatile("nop");
    }
}

// The linker's script has the page of the record.
extern uint8_t record_begin[], record_end[];

const uint8_t *port_record(size_t *bytes) {
    *bytes = (size_t)(record_end - record_begin);
    return record_begin;
}

void port_forget(size_t at, size_t count) {
    for (size_t word = at / 4; word < (at + count) / 4; word++) {
        board_clear((volatile uint32_t *)(void *)record_begin + word);
    }
}

void port_start(int count, char **arguments) {
    (void)count;
    (void)arguments;
    host_start();
    board_start();
}
