// A device that learns the activity of whoever carries it, and names that of each new window with
// the model of the last round. It is the same source on boards and on Linux: port.h has what they
// differ in. recipe.h is what `smolfed data recipe c/examples/motion.toml --c` prints.
//
// With -DPUBLISHER='"..."', the digits of publisher.pub, it only infers, with the models of
// `smolfed deliver`: docs/delivery.md.
#include "port.h"
#include "recipe.h"
#include "sensor.h"

// Memory of the device. sf_memory_bytes or sf_infer_bytes says how much it needs.
enum { MEMORY_BYTES = 4096 };
static union {
    uint64_t alignment;
    uint8_t bytes[MEMORY_BYTES];
} memory;

static void stop_unless(sf_status status) {
    if (status != SF_OK) {
        port_print(sf_strerror((int32_t)status));
        port_print("\n");
        port_exit(1);
    }
}

static void print_number(uint32_t number) {
    char text[11];
    char *digit = text + sizeof text - 1;
    *digit = '\0';
    do {
        *--digit = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    port_print(digit);
}

// The last rows of the sensor, in a ring.
static int16_t rows[SMOLFED_LENGTH][SENSOR_CHANNELS];
static size_t next_row, missing_rows;
static sensor motion;

// Measures a row. If it completes a window, its features are written.
static bool measure(int8_t features[SMOLFED_FEATURES]) {
    static uint32_t work[SMOLFED_WORK];
    sensor_read(&motion, rows[next_row]);
    next_row = (next_row + 1) % SMOLFED_LENGTH;
    if (motion.row % SENSOR_STRETCH == 0) {
        // A window lies in one activity.
        missing_rows = SMOLFED_LENGTH;
    }
    if (--missing_rows > 0) {
        return false;
    }
    missing_rows = SMOLFED_STEP;
    stop_unless(sf_window_i8(&smolfed_recipe, rows[0], SMOLFED_LENGTH * SENSOR_CHANNELS, next_row,
                             work, SMOLFED_WORK, features, SMOLFED_FEATURES));
    return true;
}

// Everything that waits goes out.
static void send(sf_device *device) {
    for (;;) {
        const uint8_t *bytes = NULL;
        size_t count = 0;
        stop_unless(sf_outgoing(device, &bytes, &count));
        if (count == 0) {
            return;
        }
        for (size_t sent = 0; sent < count;) {
            sent += port_write(bytes + sent, count - sent);
        }
        stop_unless(sf_sent(device));
    }
}

// Takes what has come in, and tells whether anything had.
static bool receive(sf_device *device) {
    static uint8_t bytes[64];
    size_t count = port_read(bytes, sizeof bytes);
    for (size_t at = 0; at < count;) {
        size_t taken = 0;
        stop_unless(sf_receive(device, bytes + at, count - at, &taken));
        at += taken;
        send(device);
    }
    return count > 0;
}

#ifdef PUBLISHER
static const char model_words[] = "version ";

// Asks for a newer version every ten minutes, in case an offer was lost.
enum { ASK_MILLISECONDS = 600000 };

static void ask(sf_device *device) {
    static uint32_t asked;
    if (port_milliseconds() - asked >= ASK_MILLISECONDS) {
        asked = port_milliseconds();
        stop_unless(sf_infer_ask(device));
        send(device);
    }
}

// The key of the publisher, from its digits.
static void read_publisher(uint8_t key[32]) {
    static const char digits[] = PUBLISHER;
    _Static_assert(sizeof digits == 65, "PUBLISHER has 64 hexadecimal digits");
    for (size_t at = 0; at < 64; at++) {
        char digit = digits[at];
        int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
        if (value < 0 || value > 15) {
            port_print("PUBLISHER has other characters than 0-9 and a-f\n");
            port_exit(2);
        }
        key[at / 2] = (uint8_t)(16 * key[at / 2] + value);
    }
}

static sf_device *open(void) {
    static uint8_t publisher[32];
    read_publisher(publisher);
    sf_infer config = {0};
    config.kind = &SMOLFED_INFER_KIND;
    config.features = SMOLFED_FEATURES;
    config.classes = SMOLFED_CLASSES;
    config.places = SMOLFED_PLACES;
    config.recipe = &smolfed_recipe;
    config.record = port_record(&config.record_bytes);
    config.publisher = publisher;
    config.models.page_bytes = port_page_bytes();
    config.models = port_models(sf_infer_pages(&config));
    config.random = port_random();
    uint32_t number = 0;
    stop_unless(sf_record_device(config.record, config.record_bytes, &number));
    motion = sensor_of(number);
    sf_device *device = NULL;
    stop_unless(sf_infer_open(memory.bytes, sizeof memory.bytes, &config, &device));
    return device;
}
#else
static const char model_words[] = "model of round ";

static void ask(sf_device *device) { (void)device; }

// Keeps the first windows of the sensor. A product goes on and keeps the last ones.
static void fill(sf_device *device) {
    int8_t features[SMOLFED_FEATURES];
    for (int kept = 0; kept < SENSOR_WINDOWS;) {
        if (measure(features)) {
            stop_unless(sf_add_sample_i8(device, features, SMOLFED_FEATURES, motion.activity));
            kept++;
        }
    }
}

static sf_device *open(void) {
    sf_config config = {0};
    config.kind = &SMOLFED_KIND;
    config.features = SMOLFED_FEATURES;
    config.classes = SMOLFED_CLASSES;
    config.samples = SENSOR_WINDOWS;
    config.places = SMOLFED_PLACES;
    config.recipe = &smolfed_recipe;
    config.record = port_record(&config.record_bytes);
    config.ledger = port_flash();
    config.random = port_random();
    uint32_t number = 0;
    stop_unless(sf_record_device(config.record, config.record_bytes, &number));
    motion = sensor_of(number);
    sf_device *device = NULL;
    stop_unless(sf_open(memory.bytes, sizeof memory.bytes, &config, &device));
    port_forget(SF_FIRST_KEY_AT, SF_FIRST_KEY_BYTES);
    fill(device);
    return device;
}
#endif

// Measures, and names the activity of the first window with each model.
static void use(sf_device *device) {
    static uint32_t named = UINT32_MAX;
    int8_t features[SMOLFED_FEATURES];
    int32_t scores[SMOLFED_CLASSES];
    uint32_t round = 0;
    uint16_t found = 0;
    if (!measure(features) || sf_model_round(device, &round) != SF_OK || round == named) {
        return;
    }
    named = round;
    stop_unless(sf_predict_i8(device, features, SMOLFED_FEATURES, scores, SMOLFED_CLASSES, &found));
    stop_unless(sf_probabilities_i32(device, scores, SMOLFED_CLASSES));
    port_print(model_words);
    print_number(round);
    port_print(": activity ");
    print_number(found);
    port_print(found == motion.activity ? ", right, " : ", wrong, ");
    print_number((uint32_t)scores[found] * 100u / 65536u);
    port_print(" %\n");
}

int main(int count, char **arguments) {
    port_start(count, arguments);
    sf_device *device = open();
    stop_unless(sf_timeout(device));
    send(device);
    uint32_t heard = port_milliseconds();
    for (;;) {
        bool has_more = false;
        stop_unless(sf_train_some(device, 1, &has_more));
        sf_phase phase = SF_TRAINING;
        if (sf_phase_of(device, &phase) == SF_PENDING) {
            // The flash goes on: sf_train_some asks it again.
            continue;
        }
        send(device);
        if (receive(device) || has_more) {
            heard = port_milliseconds();
            continue;
        }
        use(device);
        ask(device);
        if (port_milliseconds() - heard >= 500) {
            stop_unless(sf_timeout(device));
            send(device);
            heard = port_milliseconds();
        }
        port_sleep(10);
    }
}
