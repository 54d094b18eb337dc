// A simulated sensor of motion, as sensor.h describes it.
#include "sensor.h"

// A linear congruence (Numerical Recipes).
static uint32_t word(sensor *sensor) {
    sensor->noise = sensor->noise * 1664525u + 1013904223u;
    return sensor->noise >> 16;
}

sensor sensor_of(uint32_t number) {
    sensor made = {number, UINT32_MAX, 0};
    return made;
}

// A saw tooth in each channel, with a slope that is the activity's.
void sensor_read(sensor *sensor, int16_t row[SENSOR_CHANNELS]) {
    sensor->row++;
    if (sensor->row % SENSOR_STRETCH == 0) {
        sensor->activity = (uint16_t)(word(sensor) % SENSOR_ACTIVITIES);
    }
    for (uint32_t channel = 0; channel < SENSOR_CHANNELS; channel++) {
        uint32_t slope = 32u * (3u * sensor->activity + channel + 1u);
        int32_t wave = (int32_t)(sensor->row * slope % 2048u) - 1024;
        row[channel] = (int16_t)(wave + (int32_t)(word(sensor) % 512u) - 256);
    }
}
