// The smallest program: the version of the library, and the memory of a device.
#include <smolfed.h>

static size_t device_bytes(void) {
    const sf_config config = {
        .kind = &sf_softmax_i8,
        .features = 18,
        .classes = 4,
        .samples = 16,
        .places = 6,
    };
    return sf_memory_bytes(&config);
}

#ifdef __linux__
#include <stdio.h>

int main(void) {
    printf("smolfed %s: %zu bytes for a device\n", sf_version(), device_bytes());
    return 0;
}
#else
// A debugger reads these.
const char *volatile version;
volatile size_t bytes;

int main(void) {
    version = sf_version();
    bytes = device_bytes();
    for (;;) {
    }
}

// The library calls this if it finds an error in itself. A product restarts.
void sf_panic(void) {
    for (;;) {
    }
}
#endif
