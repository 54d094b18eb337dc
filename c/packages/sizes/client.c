// A whole client with little else, to measure the flash that the library takes. `cargo xtask
// c-library` links it, and writes the bytes of the library into the file SIZES. It never runs.
#include <smolfed.h>

#ifdef FLOAT
typedef float feature;
typedef float score;
#define KIND sf_softmax_f32
#define INFER_KIND sf_infer_softmax_f32
#define add_sample sf_add_sample_f32
#define predict sf_predict_f32
#else
typedef int8_t feature;
typedef int32_t score;
#define KIND sf_softmax_i8
#define INFER_KIND sf_infer_softmax_i8
#define add_sample sf_add_sample_i8
#define predict sf_predict_i8
#endif

enum { FEATURES = 18, CLASSES = 4, SAMPLES = 16 };
static union {
    uint64_t alignment;
    uint8_t bytes[4096];
} memory;
#ifdef INFER
static sf_infer config;
#else
static sf_config config;
#endif
static feature features[FEATURES];
static score scores[CLASSES];

#ifdef SLEEP
static sf_flash held;
static sf_wake wake;
#endif

// The register of a line.
static volatile uint8_t line;

int main(void) {
    sf_device *device = NULL;
    config.features = FEATURES;
    config.classes = CLASSES;
#ifdef INFER
    config.kind = &INFER_KIND;
    sf_infer_open(memory.bytes, sizeof memory.bytes, &config, &device);
#else
    config.kind = &KIND;
    config.samples = SAMPLES;
    sf_open(memory.bytes, sizeof memory.bytes, &config, &device);
#endif
#ifdef SLEEP
    bool done = false;
    sf_resume(device, &held, &done);
    sf_set_awake(device, &wake);
#endif
    for (;;) {
        uint16_t class = 0;
        const uint8_t *bytes = NULL;
        uint8_t byte = line;
        size_t count = 0;
#ifndef INFER
        bool has_more = false;
        add_sample(device, features, FEATURES, class);
        sf_train_some(device, 1, &has_more);
#endif
        sf_receive(device, &byte, 1, &count);
        sf_outgoing(device, &bytes, &count);
        while (count > 0) {
            line = bytes[--count];
        }
        sf_sent(device);
        sf_timeout(device);
#ifdef SLEEP
        sf_hold(device, &held, &done);
        sf_release(device, &held, &done);
#endif
        predict(device, features, FEATURES, scores, CLASSES, &class);
    }
}

#ifndef __linux__
void sf_panic(void) {
    for (;;) {
    }
}
#endif
