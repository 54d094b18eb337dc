// Prints the measurements of the sensors of some devices as a table in CSV, with device, series,
// activity and three axes: the first stretches of each.
#include <stdio.h>
#include <stdlib.h>

#include "sensor.h"

int main(int count, char **arguments) {
    unsigned long devices = count > 1 ? strtoul(arguments[1], NULL, 10) : 20;
    printf("device,series,activity,x,y,z\n");
    for (unsigned long device = 0; device < devices; device++) {
        sensor sensor = sensor_of((uint32_t)device);
        for (int at = 0; at < SENSOR_STRETCHES * SENSOR_STRETCH; at++) {
            int16_t row[SENSOR_CHANNELS];
            sensor_read(&sensor, row);
            printf("%lu,%lu-%d,%d,%d,%d,%d\n", device, device, at / SENSOR_STRETCH,
                   sensor.activity, row[0], row[1], row[2]);
        }
    }
    return 0;
}
