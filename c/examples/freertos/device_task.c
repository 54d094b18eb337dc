// The device as a task of FreeRTOS. Bytes of the line go from its interrupt into a queue, and windows
// from the task of the sensor into another one. One task owns the device and makes all calls with it,
// so that none answers SF_BUSY. It trains at a low priority, and other tasks interrupt it.
#include "FreeRTOS.h"
#include "queue.h"
#include "task.h"

#include "../port.h"
#include "../recipe.h"

enum { SAMPLES = 16, MEMORY_BYTES = 4096, LINE_BYTES = 512, WINDOWS = 2 };

// Words of the owner's stack. Thirty rounds on an emulated Cortex-M4F used 455 of them.
enum { STACK_WORDS = 1024, PRIORITY = tskIDLE_PRIORITY + 1, SILENCE_MS = 500 };

// A window of the sensor, as it goes through the queue.
typedef struct {
    int8_t features[SMOLFED_FEATURES];
    uint16_t activity;
} window;

void line_interrupt(uint8_t byte);
BaseType_t device_add(const window *window);
void device_start(void);

static QueueHandle_t line, windows;

static union {
    uint64_t alignment;
    uint8_t bytes[MEMORY_BYTES];
} memory;

static void stop_unless(sf_status status) {
    if (status != SF_OK) {
        port_print(sf_strerror((int32_t)status));
        port_exit(1);
    }
}

// The interrupt of the line calls it for each byte. A full queue loses the byte, and the frame is
// sent again. No function of the library is called here.
void line_interrupt(uint8_t byte) {
    BaseType_t woken = pdFALSE;
    (void)xQueueSendFromISR(line, &byte, &woken);
    portYIELD_FROM_ISR(woken);
}

// Tasks of sensors call it. It answers pdFALSE if the owner has not taken the last windows yet.
BaseType_t device_add(const window *window) { return xQueueSend(windows, window, 0); }

static void send(sf_device *device) {
    for (;;) {
        const uint8_t *bytes = NULL;
        size_t count = 0;
        stop_unless(sf_outgoing(device, &bytes, &count));
        if (count == 0) {
            return;
        }
        for (size_t sent = 0; sent < count;) {
            size_t taken = port_write(bytes + sent, count - sent);
            sent += taken;
            if (taken == 0) {
                vTaskDelay(1);
            }
        }
        stop_unless(sf_sent(device));
    }
}

// Waits for a byte, and takes all that are there. It tells whether there were any.
static bool receive(sf_device *device, TickType_t wait) {
    uint8_t bytes[64];
    size_t count = 0;
    while (count < sizeof bytes && xQueueReceive(line, &bytes[count], wait) == pdPASS) {
        count++;
        wait = 0;
    }
    for (size_t at = 0; at < count;) {
        size_t taken = 0;
        stop_unless(sf_receive(device, bytes + at, count - at, &taken));
        at += taken;
        send(device);
    }
    return count > 0;
}

// Adds the windows that wait, unless a round trains: they then wait longer.
static void add_windows(sf_device *device) {
    sf_phase phase = SF_SILENT;
    window next;
    stop_unless(sf_phase_of(device, &phase));
    while (phase != SF_TRAINING && xQueueReceive(windows, &next, 0) == pdPASS) {
        stop_unless(sf_add_sample_i8(device, next.features, SMOLFED_FEATURES, next.activity));
    }
}

static sf_device *open_device(void) {
    sf_config config = {0};
    config.kind = &SMOLFED_KIND;
    config.features = SMOLFED_FEATURES;
    config.classes = SMOLFED_CLASSES;
    config.samples = SAMPLES;
    config.places = SMOLFED_PLACES;
    config.recipe = &smolfed_recipe;
    config.record = port_record(&config.record_bytes);
    config.ledger = port_flash();
    config.random = port_random();
    sf_device *device = NULL;
    stop_unless(sf_open(memory.bytes, sizeof memory.bytes, &config, &device));
    port_forget(SF_FIRST_KEY_AT, SF_FIRST_KEY_BYTES);
    return device;
}

static void device_task(void *parameters) {
    (void)parameters;
    sf_device *device = open_device();
    stop_unless(sf_timeout(device));
    send(device);
    for (;;) {
        bool has_more = false;
        add_windows(device);
        stop_unless(sf_train_some(device, 1, &has_more));
        send(device);
        // Between two pieces of a round it does not wait.
        bool heard = receive(device, has_more ? 0 : pdMS_TO_TICKS(SILENCE_MS));
        if (!heard && !has_more) {
            stop_unless(sf_timeout(device));
            send(device);
        }
    }
}

// Creates the queues and the task, all in static memory. main calls it before vTaskStartScheduler.
void device_start(void) {
    static uint8_t line_bytes[LINE_BYTES], window_bytes[WINDOWS * sizeof(window)];
    static StaticQueue_t line_queue, window_queue;
    static StackType_t stack[STACK_WORDS];
    static StaticTask_t task;
    line = xQueueCreateStatic(LINE_BYTES, 1, line_bytes, &line_queue);
    windows = xQueueCreateStatic(WINDOWS, sizeof(window), window_bytes, &window_queue);
    (void)xTaskCreateStatic(device_task, "smolfed", STACK_WORDS, NULL, PRIORITY, stack, &task);
}
