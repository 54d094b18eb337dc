// Functions of an emulated board that use its host (semihosting): a console, an exit code, random
// bytes, and a file in the place of flash. A real board has a driver for each.
#include "board.h"

enum { OPEN = 0x01, WRITE_TEXT = 0x04, WRITE = 0x05, READ = 0x06, SEEK = 0x0A };
enum { LENGTH = 0x0C, COMMAND_LINE = 0x15, EXIT = 0x20, APPLICATION_EXIT = 0x20026 };
enum { MODE_READ = 1, MODE_UPDATE = 3, MODE_CREATE = 7 };

// Bytes of a page of the file, and their number.
enum { PAGE = 128, PAGES = 2 };

static int32_t flash_file, random_file;

int32_t semihost(int32_t operation, const void *arguments) {
#ifdef __riscv
    register int32_t a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = arguments;
    __asm__ volatile(".option push\n.option norvc\n.balign 16\nslli x0, x0, 0x1f\nebreak\n"
                     "srai x0, x0, 7\n.option pop"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return a0;
#else
    register int32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = arguments;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
#endif
}

void port_print(const char *text) { semihost(WRITE_TEXT, text); }

void port_exit(int code) {
    const uint32_t arguments[2] = {APPLICATION_EXIT, (uint32_t)code};
    semihost(EXIT, arguments);
    for (;;) {
    }
}

void sf_panic(void);
void sf_panic(void) {
    port_print("panic\n");
    port_exit(3);
}

static int32_t open_file(const char *name, uint32_t mode) {
    uint32_t length = 0;
    while (name[length] != '\0') {
        length++;
    }
    const struct {
        const char *name;
        uint32_t mode;
        uint32_t length;
    } file = {name, mode, length};
    return semihost(OPEN, &file);
}

// The second word of the command line names the file of the ledger, or of the models.
static char line[256];
static char *name = line;

void host_start(void) {
    const struct {
        char *text;
        uint32_t bytes;
    } command = {line, sizeof line};
    semihost(COMMAND_LINE, &command);
    while (*name != '\0' && *name != ' ') {
        name++;
    }
    name += *name == ' ';
    flash_file = open_file(name, MODE_UPDATE);
    random_file = open_file("/dev/urandom", MODE_READ);
    if (random_file < 0) {
        port_print("no random bytes\n");
        port_exit(2);
    }
}

static bool seek(uint32_t at) {
    const uint32_t arguments[2] = {(uint32_t)flash_file, at};
    return semihost(SEEK, arguments) == 0;
}

// Whether all bytes were read or written.
static bool transfer(int32_t operation, int32_t file, const void *bytes, size_t count) {
    const uint32_t arguments[3] = {(uint32_t)file, (uint32_t)bytes, count};
    return semihost(operation, arguments) == 0;
}

static int32_t flash_read(void *context, uint32_t at, uint8_t *to, size_t count) {
    (void)context;
    return seek(at) && transfer(READ, flash_file, to, count) ? 0 : 1;
}

static int32_t flash_write(void *context, uint32_t at, const uint8_t *from, size_t count) {
    (void)context;
    return seek(at) && transfer(WRITE, flash_file, from, count) ? 0 : 1;
}

static int32_t flash_erase(void *context, uint32_t at, size_t count) {
    static uint8_t blank[PAGE];
    for (size_t byte = 0; byte < PAGE; byte++) {
        blank[byte] = 0xFF;
    }
    for (uint32_t end = at + count; at < end; at += PAGE) {
        if (flash_write(context, at, blank, PAGE) != 0) {
            return 1;
        }
    }
    return 0;
}

static sf_flash flash_of(uint32_t pages) {
    if (flash_file < 0) {
        port_print("no file for the flash\n");
        port_exit(2);
    }
    const sf_flash flash = {NULL, flash_read, flash_write, flash_erase, PAGE, pages, NULL};
    return flash;
}

// Models may begin with blank flash. A missing ledger is an error, because a new one would spend
// all participations again.
sf_flash port_models(uint32_t pages) {
    if (flash_file < 0) {
        flash_file = open_file(name, MODE_CREATE);
    }
    sf_flash flash = flash_of(pages);
    if (semihost(LENGTH, &flash_file) == 0 && flash_erase(NULL, 0, pages * PAGE) != 0) {
        port_print("the flash file could not be created\n");
        port_exit(2);
    }
    return flash;
}

uint32_t port_page_bytes(void) { return PAGE; }

sf_flash port_flash(void) { return flash_of(PAGES); }

void host_random(void *context, uint8_t *to, size_t count) {
    (void)context;
    if (!transfer(READ, random_file, to, count)) {
        port_print("no random bytes\n");
        port_exit(2);
    }
}
