// Linux: a TCP connection is the line, a file is the flash of the ledger or of the models, and the
// kernel generates random bytes. Arguments: the provisioning record, the flash file and HOST:PORT.
#define _GNU_SOURCE
#include "../port.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// The ledger has two pages, as `smolfed provision` writes them.
enum { PAGE = 128, PAGES = 2, RETRY_MS = 1000 };

static char *host, *service;
static int line = -1, flash_file = -1, record_file = -1;
static uint32_t tried;

static union {
    uint32_t alignment;
    uint8_t bytes[1 << 20];
} record;
static size_t record_bytes;

void port_print(const char *text) {
    fputs(text, stdout);
    fflush(stdout);
}

void port_exit(int code) { exit(code); }

static void stop(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(2);
}

uint32_t port_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)now.tv_sec * 1000u + (uint32_t)(now.tv_nsec / 1000000);
}

// A first start has no file yet: blank flash. Two processes must not share it.
static void open_flash(const char *path) {
    flash_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (flash_file < 0 || flock(flash_file, LOCK_EX | LOCK_NB) != 0) {
        stop(path, strerror(errno));
    }
}

static void *allocated(size_t bytes) {
    void *memory = malloc(bytes);
    if (memory == NULL) {
        stop("memory", strerror(errno));
    }
    return memory;
}

static void read_record(const char *path) {
    record_file = open(path, O_RDWR | O_CLOEXEC);
    ssize_t got = record_file < 0 ? -1 : pread(record_file, record.bytes, sizeof record.bytes, 0);
    if (got < 0) {
        stop(path, strerror(errno));
    }
    record_bytes = (size_t)got;
}

static void connect_line(void) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    tried = port_milliseconds();
    if (getaddrinfo(host, service, &hints, &all) != 0) {
        return;
    }
    for (const struct addrinfo *at = all; at != NULL && line < 0; at = at->ai_next) {
        int type = at->ai_socktype | SOCK_CLOEXEC;
        line = socket(at->ai_family, type, at->ai_protocol);
        if (line >= 0 && connect(line, at->ai_addr, at->ai_addrlen) != 0) {
            close(line);
            line = -1;
        }
    }
    freeaddrinfo(all);
    // Frames are small, and the coordinator answers each window of them.
    const int yes = 1;
    if (line >= 0) {
        setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }
}

// Whether there is a connection. Where there is none, it tries again each second.
static bool is_connected(void) {
    if (line < 0 && port_milliseconds() - tried >= RETRY_MS) {
        connect_line();
    }
    return line >= 0;
}

static void hang_up(void) {
    close(line);
    line = -1;
}

void port_start(int count, char **arguments) {
    if (count != 4) {
        stop("usage", "device RECORD FLASH HOST:PORT");
    }
    read_record(arguments[1]);
    open_flash(arguments[2]);
    char *colon = strrchr(arguments[3], ':');
    if (colon == NULL) {
        stop(arguments[3], "an address is HOST:PORT");
    }
    *colon = '\0';
    host = arguments[3];
    service = colon + 1;
    connect_line();
}

const uint8_t *port_record(size_t *bytes) {
    *bytes = record_bytes;
    return record.bytes;
}

void port_forget(size_t at, size_t count) {
    memset(record.bytes + at, 0, count);
    ssize_t written = pwrite(record_file, record.bytes + at, count, (off_t)at);
    if (written != (ssize_t)count || fsync(record_file) != 0) {
        stop("the record", strerror(errno));
    }
}

static int32_t flash_read(void *context, uint32_t at, uint8_t *to, size_t count) {
    (void)context;
    return pread(flash_file, to, count, at) != (ssize_t)count;
}

static int32_t flash_write(void *context, uint32_t at, const uint8_t *from, size_t count) {
    (void)context;
    return pwrite(flash_file, from, count, at) != (ssize_t)count || fsync(flash_file) != 0;
}

static int32_t flash_erase(void *context, uint32_t at, size_t count) {
    uint8_t blank[PAGE];
    memset(blank, 0xFF, sizeof blank);
    for (size_t page = 0; page < count; page += PAGE) {
        if (flash_write(context, at + (uint32_t)page, blank, PAGE) != 0) {
            return 1;
        }
    }
    return 0;
}

sf_flash port_models(uint32_t pages) {
    const sf_flash flash = {
        .read = flash_read,
        .write = flash_write,
        .erase = flash_erase,
        .page_bytes = PAGE,
        .pages = pages,
    };
    struct stat found;
    if (fstat(flash_file, &found) != 0) {
        stop("the flash file", strerror(errno));
    }
    // Only new flash. A truncated ledger must not be extended into a new one.
    if (found.st_size == 0) {
        size_t length = (size_t)pages * PAGE;
        uint8_t *blank = memset(allocated(length), 0xFF, length);
        if (flash_write(NULL, 0, blank, length) != 0) {
            stop("the flash file", "could not be created");
        }
        free(blank);
    }
    return flash;
}

uint32_t port_page_bytes(void) { return PAGE; }

sf_flash port_flash(void) { return port_models(PAGES); }

static void random_fill(void *context, uint8_t *to, size_t count) {
    (void)context;
    while (count > 0) {
        ssize_t got = getrandom(to, count, 0);
        if (got < 0 && errno != EINTR) {
            stop("getrandom", strerror(errno));
        }
        size_t filled = got > 0 ? (size_t)got : 0;
        to += filled;
        count -= filled;
    }
}

sf_random port_random(void) {
    const sf_random random = {NULL, random_fill};
    return random;
}

// Bytes without a connection are lost, as on a line with its plug out: the device repeats them.
size_t port_write(const uint8_t *bytes, size_t count) {
    if (!is_connected()) {
        return count;
    }
    ssize_t sent = send(line, bytes, count, MSG_NOSIGNAL);
    if (sent < 0) {
        if (errno == EINTR) {
            return 0;
        }
        hang_up();
        return count;
    }
    return (size_t)sent;
}

size_t port_read(uint8_t *bytes, size_t room) {
    if (!is_connected()) {
        return 0;
    }
    ssize_t got = recv(line, bytes, room, MSG_DONTWAIT);
    bool is_broken = got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
    if (got == 0 || is_broken) {
        hang_up();
    }
    return got > 0 ? (size_t)got : 0;
}

void port_sleep(uint32_t milliseconds) {
    struct pollfd wait = {line, POLLIN, 0};
    poll(&wait, 1, (int)milliseconds);
}
