// A simulated sensor of motion: three channels of an accelerometer, the number of activities, and
// the number of rows per activity.
#ifndef SENSOR_H
#define SENSOR_H

#include <stdint.h>

// An activity lasts SENSOR_STRETCH rows. The first stretches of a sensor have SENSOR_WINDOWS windows,
// which motion.toml has of a device.
enum { SENSOR_CHANNELS = 3, SENSOR_ACTIVITIES = 4, SENSOR_STRETCH = 96, SENSOR_STRETCHES = 8 };
enum { SENSOR_WINDOWS = 2 * SENSOR_STRETCHES };

// Each sensor has its own noise.
typedef struct {
    uint32_t noise;
    uint32_t row;
    uint16_t activity;
} sensor;

sensor sensor_of(uint32_t number);

// Measures a row of counts. A row that begins another activity has row 0 of its stretch.
void sensor_read(sensor *sensor, int16_t row[SENSOR_CHANNELS]);

#endif
