// The functions of Zephyr that the sample calls.
#include "../host.h"

#include <stdarg.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/random/random.h>
#include <zephyr/storage/flash_map.h>
#include <zephyr/sys/reboot.h>
#include <zephyr/sys/ring_buffer.h>

// The record has the first page, and the ledger the other two.
static uint8_t flash[3 * HOST_PAGE];
static const struct flash_area areas[] = {{0}, {1}};
const struct device chosen_smolfed_line = {"line"};

bool device_is_ready(const struct device *dev) { return dev == &chosen_smolfed_line; }

static size_t address(const struct flash_area *fa, off_t off) {
    return fa->fa_id * (size_t)HOST_PAGE + (size_t)off;
}

int flash_area_open(uint8_t id, const struct flash_area **fa) {
    *fa = &areas[id];
    if (id == partition_id_record_partition) {
        host_load(flash, sizeof flash);
    }
    return 0;
}

int flash_area_read(const struct flash_area *fa, off_t off, void *dst, size_t len) {
    memcpy(dst, flash + address(fa, off), len);
    return 0;
}

int flash_area_write(const struct flash_area *fa, off_t off, const void *src, size_t len) {
    return host_program(flash, address(fa, off), src, len, 4);
}

int flash_area_erase(const struct flash_area *fa, off_t off, size_t len) {
    return host_erase(flash, address(fa, off), len);
}

// The interrupt of the line happens while the program waits.
static uart_irq_callback_user_data_t interrupt;
static uint8_t received[256];
static size_t received_count, taken;

int uart_irq_callback_user_data_set(const struct device *dev, uart_irq_callback_user_data_t cb,
                                    void *user_data) {
    interrupt = cb;
    return dev == &chosen_smolfed_line && user_data == NULL ? 0 : -1;
}

void uart_irq_rx_enable(const struct device *dev) {
    if (dev == &chosen_smolfed_line) {
        host_open_line();
    }
}

int uart_irq_update(const struct device *dev) { return dev == &chosen_smolfed_line; }

int uart_irq_rx_ready(const struct device *dev) {
    return dev == &chosen_smolfed_line && taken < received_count;
}

int uart_fifo_read(const struct device *dev, uint8_t *rx_data, const int size) {
    if (size < 1 || !uart_irq_rx_ready(dev)) {
        return 0;
    }
    *rx_data = received[taken++];
    return 1;
}

void uart_poll_out(const struct device *dev, unsigned char out_char) {
    if (dev == &chosen_smolfed_line) {
        host_write(&out_char, 1);
    }
}

void k_sem_give(struct k_sem *sem) {
    if (sem->count < sem->limit) {
        sem->count++;
    }
}

int k_sem_take(struct k_sem *sem, k_timeout_t timeout) {
    if (sem->count == 0) {
        host_wait((int)timeout.ticks);
    }
    taken = 0;
    received_count = host_read(received, sizeof received);
    if (received_count > 0) {
        interrupt(&chosen_smolfed_line, NULL);
    }
    if (sem->count == 0) {
        return -1;
    }
    sem->count--;
    return 0;
}

int32_t k_sleep(k_timeout_t timeout) { exit(timeout.ticks < 0 ? 3 : 4); }

uint32_t k_uptime_get_32(void) { return (uint32_t)(host_microseconds() / 1000); }

void printk(const char *fmt, ...) {
    va_list arguments;
    va_start(arguments, fmt);
    vprintf(fmt, arguments);
    va_end(arguments);
}

int sys_csrand_get(void *dst, size_t len) {
    host_random(dst, len);
    return 0;
}

void sys_reboot(int type) { exit(5 + type); }

static size_t ring_in, ring_out;

uint32_t ring_buf_put(struct ring_buf *buf, const uint8_t *data, uint32_t size) {
    uint32_t count = 0;
    while (count < size && ring_in - ring_out < buf->size) {
        buf->buffer[ring_in++ % buf->size] = data[count++];
    }
    return count;
}

uint32_t ring_buf_get(struct ring_buf *buf, uint8_t *data, uint32_t size) {
    uint32_t count = 0;
    while (count < size && ring_out < ring_in) {
        data[count++] = buf->buffer[ring_out++ % buf->size];
    }
    return count;
}
