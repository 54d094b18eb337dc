// Zephyr: the devicetree chooses the UART of the line as smolfed,line. Record and ledger are
// partitions of the flash, and the hardware generates random bytes.
#include "port.h"

#include <string.h>
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/random/random.h>
#include <zephyr/storage/flash_map.h>
#include <zephyr/sys/reboot.h>
#include <zephyr/sys/ring_buffer.h>

// A page of the flash, and the largest record: one without samples, with a recipe.
enum { PAGE = 4096, PAGES = 2, RECORD = 512 };

static const struct device *const line = DEVICE_DT_GET(DT_CHOSEN(smolfed_line));
RING_BUF_DECLARE(received, 512);
static K_SEM_DEFINE(arrived, 0, 1);

static const struct flash_area *record_area, *ledger;
static uint32_t record[RECORD / 4];

int device_main(int count, char **arguments);

int main(void) { return device_main(0, NULL); }

void port_print(const char *text) { printk("%s", text); }

void port_exit(int code) {
    printk("exit %d\n", code);
    k_sleep(K_FOREVER);
}

// The library calls this if it finds an error in itself.
void sf_panic(void) {
    sys_reboot(SYS_REBOOT_COLD);
    for (;;) {
    }
}

static void require(int error, const char *part) {
    if (error < 0) {
        printk("%s: error %d\n", part, error);
        port_exit(1);
    }
}

// A full buffer loses the byte: the frame is sent again.
static void on_interrupt(const struct device *uart, void *context) {
    uint8_t byte;
    ARG_UNUSED(context);
    while (uart_irq_update(uart) && uart_irq_rx_ready(uart)) {
        while (uart_fifo_read(uart, &byte, 1) == 1) {
            ring_buf_put(&received, &byte, 1);
        }
        k_sem_give(&arrived);
    }
}

void port_start(int count, char **arguments) {
    ARG_UNUSED(count);
    ARG_UNUSED(arguments);
    require(device_is_ready(line) ? 0 : -1, "the line");
    require(flash_area_open(FIXED_PARTITION_ID(record_partition), &record_area), "the record");
    require(flash_area_open(FIXED_PARTITION_ID(ledger_partition), &ledger), "the ledger");
    require(flash_area_read(record_area, 0, record, sizeof record), "the record");
    require(uart_irq_callback_user_data_set(line, on_interrupt, NULL), "the line");
    uart_irq_rx_enable(line);
}

const uint8_t *port_record(size_t *bytes) {
    *bytes = sizeof record;
    return (const uint8_t *)record;
}

// Zeros in flash need no erase.
void port_forget(size_t at, size_t count) {
    uint8_t *bytes = (uint8_t *)record + at;
    memset(bytes, 0, count);
    require(flash_area_write(record_area, (off_t)at, bytes, count), "the record");
}

static int32_t flash_read(void *context, uint32_t at, uint8_t *to, size_t count) {
    ARG_UNUSED(context);
    return flash_area_read(ledger, (off_t)at, to, count);
}

static int32_t flash_write(void *context, uint32_t at, const uint8_t *from, size_t count) {
    ARG_UNUSED(context);
    return flash_area_write(ledger, (off_t)at, from, count);
}

static int32_t flash_erase(void *context, uint32_t at, size_t count) {
    ARG_UNUSED(context);
    return flash_area_erase(ledger, (off_t)at, count);
}

sf_flash port_flash(void) {
    const sf_flash flash = {
        .read = flash_read,
        .write = flash_write,
        .erase = flash_erase,
        .page_bytes = PAGE,
        .pages = PAGES,
    };
    return flash;
}

static void random_fill(void *context, uint8_t *to, size_t count) {
    ARG_UNUSED(context);
    require(sys_csrand_get(to, count), "the random generator");
}

sf_random port_random(void) {
    const sf_random random = {.fill = random_fill};
    return random;
}

size_t port_write(const uint8_t *bytes, size_t count) {
    for (size_t at = 0; at < count; at++) {
        uart_poll_out(line, bytes[at]);
    }
    return count;
}

size_t port_read(uint8_t *bytes, size_t room) {
    return ring_buf_get(&received, bytes, (uint32_t)room);
}

uint32_t port_milliseconds(void) { return k_uptime_get_32(); }

void port_sleep(uint32_t milliseconds) { k_sem_take(&arrived, K_MSEC(milliseconds)); }
