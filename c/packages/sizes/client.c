// A whole client with little else. `cargo xtask c-library` links it, and writes the bytes of the
// library into the file SIZES. It never runs.
#include <smolfed.h>

#ifdef FLOAT
typedef float feature;
typedef float score;
#define KIND sf_softmax_f32
#define add_sample sf_add_sample_f32
#define predict sf_predict_f32
#else
typedef int8_t feature;
typedef int32_t score;
#define KIND sf_softmax_i8
#define add_sample sf_add_sample_i8
#define predict sf_predict_i8
#endif

enum { FEATURES = 18, CLASSES = 4, SAMPLES = 16 };
static union {
    uint64_t alignment;
    uint8_t bytes[4096];
} memory;
static sf_config config;
static feature features[FEATURES];
static score scores[CLASSES];

// The register of a line.
static volatile uint8_t line;

int main(void) {
    sf_device *device = NULL;
    config.kind = &KIND;
    config.features = FEATURES;
    config.classes = CLASSES;
    config.samples = SAMPLES;
    sf_open(memory.bytes, sizeof memory.bytes, &config, &device);
    for (;;) {
        bool has_more = false;
        uint16_t class = 0;
        const uint8_t *bytes = NULL;
        uint8_t byte = line;
        size_t count = 0;
        add_sample(device, features, FEATURES, class);
        sf_receive(device, &byte, 1, &count);
        sf_train_some(device, 1, &has_more);
        sf_outgoing(device, &bytes, &count);
        while (count > 0) {
            line = bytes[--count];
        }
        sf_sent(device);
        sf_timeout(device);
        predict(device, features, FEATURES, scores, CLASSES, &class);
    }
}

#ifndef __linux__
void sf_panic(void) {
    for (;;) {
    }
}
#endif
