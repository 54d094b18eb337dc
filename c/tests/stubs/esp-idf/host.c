// The functions of ESP-IDF that the example calls.
#include "../host.h"

#include "bootloader_random.h"
#include "driver/uart.h"
#include "esp_partition.h"
#include "esp_random.h"
#include "esp_system.h"
#include "esp_timer.h"
#include "freertos/task.h"

// The record has the first page, and the ledger the other two.
static uint8_t flash[3 * HOST_PAGE];
static const esp_partition_t record = {0, HOST_PAGE};
static const esp_partition_t ledger = {HOST_PAGE, 2 * HOST_PAGE};

const esp_partition_t *esp_partition_find_first(esp_partition_type_t type,
                                                esp_partition_subtype_t subtype,
                                                const char *label) {
    if (type != ESP_PARTITION_TYPE_DATA || subtype != ESP_PARTITION_SUBTYPE_ANY) {
        return NULL;
    }
    return strcmp(label, "record") == 0 ? &record : &ledger;
}

esp_err_t esp_partition_read(const esp_partition_t *partition, size_t src_offset, void *dst,
                             size_t size) {
    memcpy(dst, flash + partition->address + src_offset, size);
    return 0;
}

esp_err_t esp_partition_write(const esp_partition_t *partition, size_t dst_offset, const void *src,
                              size_t size) {
    return host_program(flash, partition->address + dst_offset, src, size, 4);
}

esp_err_t esp_partition_erase_range(const esp_partition_t *partition, size_t offset, size_t size) {
    return host_erase(flash, partition->address + offset, size);
}

esp_err_t uart_driver_install(uart_port_t uart_num, int rx_buffer_size, int tx_buffer_size,
                              int queue_size, QueueHandle_t *uart_queue, int intr_alloc_flags) {
    host_open_line();
    bool is_plain = tx_buffer_size == 0 && queue_size == 0 && intr_alloc_flags == 0;
    return uart_num == UART_NUM_1 && rx_buffer_size > 128 && uart_queue == NULL && is_plain ? 0 : 1;
}

esp_err_t uart_param_config(uart_port_t uart_num, const uart_config_t *uart_config) {
    return uart_num == UART_NUM_1 && uart_config->baud_rate == 115200 ? 0 : 1;
}

esp_err_t uart_set_pin(uart_port_t uart_num, int tx_io_num, int rx_io_num, int rts_io_num,
                       int cts_io_num) {
    bool has_flow = rts_io_num != UART_PIN_NO_CHANGE || cts_io_num != UART_PIN_NO_CHANGE;
    return uart_num == UART_NUM_1 && tx_io_num != rx_io_num && !has_flow ? 0 : 1;
}

int uart_write_bytes(uart_port_t uart_num, const void *src, size_t size) {
    host_write(src, size);
    return uart_num == UART_NUM_1 ? (int)size : -1;
}

int uart_read_bytes(uart_port_t uart_num, void *buf, uint32_t length, TickType_t ticks_to_wait) {
    if (ticks_to_wait > 0) {
        host_wait((int)ticks_to_wait * 10);
    }
    return uart_num == UART_NUM_1 ? (int)host_read(buf, length) : -1;
}

// Random bytes need the source of entropy.
static bool has_entropy;

void bootloader_random_enable(void) { has_entropy = true; }

void bootloader_random_disable(void) { has_entropy = false; }

void esp_fill_random(void *buf, size_t len) {
    if (!has_entropy) {
        exit(6);
    }
    host_random(buf, len);
}

void esp_restart(void) { exit(5); }

int64_t esp_timer_get_time(void) { return (int64_t)host_microseconds(); }

void vTaskDelay(const TickType_t ticks) { exit(ticks == portMAX_DELAY ? 3 : 4); }

void app_main(void);

int main(void) {
    host_load(flash, sizeof flash);
    app_main();
    return 7;
}
