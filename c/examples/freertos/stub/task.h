// A stub: see FreeRTOS.h.
#ifndef STUB_TASK_H
#define STUB_TASK_H

#include "FreeRTOS.h"

typedef struct tskTaskControlBlock *TaskHandle_t;
typedef void (*TaskFunction_t)(void *parameters);

#define tskIDLE_PRIORITY ((UBaseType_t)0)

TaskHandle_t xTaskCreateStatic(TaskFunction_t code, const char *name,
                               configSTACK_DEPTH_TYPE stack_words, void *parameters,
                               UBaseType_t priority, StackType_t *stack, StaticTask_t *task);
void vTaskDelay(TickType_t ticks);

#endif
