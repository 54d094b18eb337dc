// The devices of a board, on Linux.
#ifndef HOST_H
#define HOST_H

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { HOST_PAGE = 4096 };

// The coordinator connects to the socket "line".
static int host_line = -1;

static inline void host_fail(const char *call) {
    perror(call);
    exit(2);
}

static inline void host_open_line(void) {
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, "line");
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 1) != 0) {
        host_fail("listen");
    }
    host_line = accept(listener, NULL, NULL);
    if (host_line < 0 || fcntl(host_line, F_SETFL, O_NONBLOCK) != 0) {
        host_fail("accept");
    }
}

// Reads the bytes that are there. The program ends with the connection.
static inline size_t host_read(uint8_t *bytes, size_t room) {
    ssize_t got = read(host_line, bytes, room);
    if (got == 0) {
        exit(0);
    }
    return got < 0 ? 0 : (size_t)got;
}

static inline void host_write(const uint8_t *bytes, size_t count) {
    struct pollfd line = {host_line, POLLOUT, 0};
    while (count > 0) {
        ssize_t sent = send(host_line, bytes, count, MSG_NOSIGNAL);
        if (sent < 0) {
            poll(&line, 1, 10);
            continue;
        }
        bytes += sent;
        count -= (size_t)sent;
    }
}

// Waits for a byte, or for some milliseconds.
static inline void host_wait(int milliseconds) {
    struct pollfd line = {host_line, POLLIN, 0};
    poll(&line, 1, milliseconds);
}

static inline uint64_t host_microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static inline void host_random(void *to, size_t count) {
    if (getrandom(to, count, 0) != (ssize_t)count) {
        host_fail("getrandom");
    }
}

// Erased flash with the record of device 0 at its beginning.
static inline void host_load(uint8_t *flash, size_t count) {
    memset(flash, 0xFF, count);
    FILE *file = fopen("fleet/device-0.bin", "rb");
    if (file == NULL || fread(flash, 1, HOST_PAGE, file) == 0) {
        host_fail("fleet/device-0.bin");
    }
    fclose(file);
}

// A write clears bits, in whole units.
static inline int host_program(uint8_t *flash, size_t at, const void *from, size_t count,
                               size_t unit) {
    if (at % unit != 0 || count % unit != 0) {
        return -1;
    }
    for (size_t byte = 0; byte < count; byte++) {
        flash[at + byte] &= ((const uint8_t *)from)[byte];
    }
    return 0;
}

static inline int host_erase(uint8_t *flash, size_t at, size_t count) {
    if (at % HOST_PAGE != 0 || count % HOST_PAGE != 0) {
        return -1;
    }
    memset(flash + at, 0xFF, count);
    return 0;
}

#endif
