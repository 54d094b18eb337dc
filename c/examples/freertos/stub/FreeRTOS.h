// A stub of the types and macros of FreeRTOS that the example uses, to check its syntax without the
// kernel. Projects use the kernel's own headers.
#ifndef STUB_FREERTOS_H
#define STUB_FREERTOS_H

#include <stddef.h>
#include <stdint.h>

typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;
typedef uint32_t StackType_t;

typedef struct {
    void *reserved[24];
} StaticTask_t;

typedef struct {
    void *reserved[20];
} StaticQueue_t;

#define pdFALSE ((BaseType_t)0)
#define pdTRUE ((BaseType_t)1)
#define pdPASS pdTRUE
#define configTICK_RATE_HZ 1000u
#define configSTACK_DEPTH_TYPE uint32_t
#define pdMS_TO_TICKS(milliseconds) \
    ((TickType_t)((uint64_t)(milliseconds) * configTICK_RATE_HZ / 1000u))
#define portYIELD_FROM_ISR(woken) ((void)(woken))

#endif
