#ifndef DEVICE_H
#define DEVICE_H
#include <stdbool.h>
#include <stdint.h>

struct device {
    const char *name;
};
extern const struct device chosen_smolfed_line;
#define DT_CHOSEN(property) chosen_##property
#define DEVICE_DT_GET(node) (&node)
bool device_is_ready(const struct device *dev);
#endif
