// ESP-IDF: the line is UART 1, record and ledger are partitions of the flash, and the hardware
// generates random bytes.
#include "port.h"

#include <stdio.h>
#include <string.h>

#include "bootloader_random.h"
#include "driver/uart.h"
#include "esp_err.h"
#include "esp_partition.h"
#include "esp_random.h"
#include "esp_system.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"

// A page of the flash, and the largest record: one without samples, with a recipe.
enum { PAGE = 4096, PAGES = 2, RECORD = 512 };
static const uart_port_t LINE = UART_NUM_1;
enum { SEND = 4, RECEIVE = 5, BAUD = 115200, QUEUE = 1024 };

static const esp_partition_t *record_area, *ledger;
static uint32_t record[RECORD / 4];

int device_main(int count, char **arguments);

void app_main(void) { device_main(0, NULL); }

void port_print(const char *text) { fputs(text, stdout); }

void port_exit(int code) {
    printf("exit %d\n", code);
    for (;;) {
        vTaskDelay(portMAX_DELAY);
    }
}

// The library calls this if it finds an error in itself.
void sf_panic(void) { esp_restart(); }

static const esp_partition_t *partition(const char *label) {
    const esp_partition_t *found =
        esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_ANY, label);
    if (found == NULL) {
        printf("no partition %s\n", label);
        port_exit(1);
    }
    return found;
}

void port_start(int count, char **arguments) {
    (void)count;
    (void)arguments;
    const uart_config_t settings = {
        .baud_rate = BAUD,
        .data_bits = UART_DATA_8_BITS,
        .parity = UART_PARITY_DISABLE,
        .stop_bits = UART_STOP_BITS_1,
        .flow_ctrl = UART_HW_FLOWCTRL_DISABLE,
    };
    ESP_ERROR_CHECK(uart_driver_install(LINE, QUEUE, 0, 0, NULL, 0));
    ESP_ERROR_CHECK(uart_param_config(LINE, &settings));
    ESP_ERROR_CHECK(uart_set_pin(LINE, SEND, RECEIVE, UART_PIN_NO_CHANGE, UART_PIN_NO_CHANGE));
    record_area = partition("record");
    ledger = partition("ledger");
    ESP_ERROR_CHECK(esp_partition_read(record_area, 0, record, sizeof record));
}

const uint8_t *port_record(size_t *bytes) {
    *bytes = sizeof record;
    return (const uint8_t *)record;
}

// Zeros in flash need no erase.
void port_forget(size_t at, size_t count) {
    uint8_t *bytes = (uint8_t *)record + at;
    memset(bytes, 0, count);
    ESP_ERROR_CHECK(esp_partition_write(record_area, at, bytes, count));
}

static int32_t flash_read(void *context, uint32_t at, uint8_t *to, size_t count) {
    (void)context;
    return esp_partition_read(ledger, at, to, count);
}

static int32_t flash_write(void *context, uint32_t at, const uint8_t *from, size_t count) {
    (void)context;
    return esp_partition_write(ledger, at, from, count);
}

static int32_t flash_erase(void *context, uint32_t at, size_t count) {
    (void)context;
    return esp_partition_erase_range(ledger, at, count);
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

// Without Wi-Fi and Bluetooth the generator has entropy only while this source is on.
static void random_fill(void *context, uint8_t *to, size_t count) {
    (void)context;
    bootloader_random_enable();
    esp_fill_random(to, count);
    bootloader_random_disable();
}

sf_random port_random(void) {
    const sf_random random = {.fill = random_fill};
    return random;
}

size_t port_write(const uint8_t *bytes, size_t count) {
    int sent = uart_write_bytes(LINE, bytes, count);
    return sent < 0 ? 0 : (size_t)sent;
}

static size_t read_line(uint8_t *bytes, size_t room, TickType_t ticks) {
    int got = uart_read_bytes(LINE, bytes, (uint32_t)room, ticks);
    return got < 0 ? 0 : (size_t)got;
}

// A byte for which port_sleep has waited.
static uint8_t waiting;
static size_t waiting_count;

size_t port_read(uint8_t *bytes, size_t room) {
    size_t count = 0;
    if (waiting_count == 1 && room > 0) {
        bytes[0] = waiting;
        count = 1;
        waiting_count = 0;
    }
    return count + read_line(bytes + count, room - count, 0);
}

void port_sleep(uint32_t milliseconds) {
    if (waiting_count == 0) {
        waiting_count = read_line(&waiting, 1, pdMS_TO_TICKS(milliseconds));
    }
}

uint32_t port_milliseconds(void) { return (uint32_t)(esp_timer_get_time() / 1000); }
