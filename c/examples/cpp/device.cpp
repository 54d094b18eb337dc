// The example ../device.c in C++17: it learns activities, takes part in rounds, and names new
// windows. It links with the same port of a board or of Linux.
#include "smolfed.hpp"

extern "C" {
#include "../port.h"
#include "../sensor.h"
}
#include "../recipe.h"

namespace {

// The windows that are kept.
constexpr uint16_t sample_count = 16;

using Window = int8_t[SMOLFED_FEATURES];

smolfed::Memory<4096> memory;

void stop_unless(sf_status status) {
    if (status != SF_OK) {
        port_print(sf_strerror(status));
        port_print("\n");
        port_exit(1);
    }
}

void print(uint32_t number) {
    char text[11];
    char *digit = text + sizeof text - 1;
    *digit = '\0';
    do {
        *--digit = static_cast<char>('0' + number % 10);
        number /= 10;
    } while (number != 0);
    port_print(digit);
}

// A sensor of motion, whose last rows lie in a ring.
class Motion {
public:
    explicit Motion(uint32_t number) : sensor_(sensor_of(number)) {}

    // Measures a row. If the row completes a window, its features are written.
    bool measure(Window &features) {
        sensor_read(&sensor_, rows_[next_]);
        next_ = (next_ + 1) % SMOLFED_LENGTH;
        if (sensor_.row % SENSOR_STRETCH == 0) {
            // A window lies in one activity.
            missing_ = SMOLFED_LENGTH;
        }
        if (--missing_ > 0) {
            return false;
        }
        missing_ = SMOLFED_STEP;
        stop_unless(smolfed::window(smolfed_recipe, rows_, next_, work_, features));
        return true;
    }

    uint16_t activity() const { return sensor_.activity; }

private:
    sensor sensor_;
    int16_t rows_[SMOLFED_LENGTH][SENSOR_CHANNELS] = {};
    uint32_t work_[SMOLFED_WORK] = {};
    size_t next_ = 0, missing_ = 0;
};

// Sends everything that waits.
void send(smolfed::Device &device) {
    for (;;) {
        smolfed::Bytes bytes;
        stop_unless(device.outgoing(bytes));
        if (bytes.count == 0) {
            return;
        }
        for (size_t sent = 0; sent < bytes.count;) {
            sent += port_write(bytes.data + sent, bytes.count - sent);
        }
        stop_unless(device.sent());
    }
}

// Takes the bytes that have come in, and returns whether there were any.
bool receive(smolfed::Device &device) {
    uint8_t bytes[64];
    const size_t count = port_read(bytes, sizeof bytes);
    for (size_t at = 0; at < count;) {
        size_t taken = 0;
        stop_unless(device.receive({bytes + at, count - at}, taken));
        at += taken;
        send(device);
    }
    return count > 0;
}

// Measures, and names the activity of the first window after each round.
void use(const smolfed::Device &device, Motion &motion, uint32_t &named) {
    Window window;
    uint32_t round = 0;
    if (!motion.measure(window) || device.model_round(round) != SF_OK || round == named) {
        return;
    }
    named = round;
    int32_t scores[SMOLFED_CLASSES];
    uint16_t found = 0;
    stop_unless(device.predict(window, scores, found));
    stop_unless(device.probabilities(scores));
    port_print("model of round ");
    print(round);
    port_print(": activity ");
    print(found);
    port_print(found == motion.activity() ? ", right, " : ", wrong, ");
    print(static_cast<uint32_t>(scores[found]) * 100u / 65536u);
    port_print(" %\n");
}

// Keeps the first windows of the sensor.
void fill(smolfed::Device &device, Motion &motion) {
    for (int kept = 0; kept < sample_count;) {
        Window window;
        if (motion.measure(window)) {
            stop_unless(device.add(window, motion.activity()));
            kept++;
        }
    }
}

[[noreturn]] void run(smolfed::Device &device, Motion &motion) {
    uint32_t named = UINT32_MAX;
    stop_unless(device.timeout());
    send(device);
    uint32_t heard = port_milliseconds();
    for (;;) {
        bool has_more = false;
        stop_unless(device.train_some(1, has_more));
        send(device);
        if (receive(device) || has_more) {
            heard = port_milliseconds();
            continue;
        }
        use(device, motion, named);
        if (port_milliseconds() - heard >= 500) {
            stop_unless(device.timeout());
            send(device);
            heard = port_milliseconds();
        }
        port_sleep(10);
    }
}

} // namespace

int main(int count, char **arguments) {
    port_start(count, arguments);
    sf_config config = {};
    config.kind = &SMOLFED_KIND;
    config.features = SMOLFED_FEATURES;
    config.classes = SMOLFED_CLASSES;
    config.samples = sample_count;
    config.places = SMOLFED_PLACES;
    config.recipe = &smolfed_recipe;
    config.record = port_record(&config.record_bytes);
    config.ledger = port_flash();
    config.random = port_random();
    uint32_t number = 0;
    stop_unless(sf_record_device(config.record, config.record_bytes, &number));
    Motion motion(number);
    smolfed::Device device;
    stop_unless(device.open(memory, config));
    port_forget(SF_FIRST_KEY_AT, SF_FIRST_KEY_BYTES);
    fill(device, motion);
    run(device, motion);
}
