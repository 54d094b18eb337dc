// A stub: see FreeRTOS.h.
#ifndef STUB_QUEUE_H
#define STUB_QUEUE_H

#include "FreeRTOS.h"

typedef struct QueueDefinition *QueueHandle_t;

QueueHandle_t xQueueCreateStatic(UBaseType_t length, UBaseType_t item_bytes, uint8_t *storage,
                                 StaticQueue_t *queue);
BaseType_t xQueueSend(QueueHandle_t queue, const void *item, TickType_t wait);
BaseType_t xQueueSendFromISR(QueueHandle_t queue, const void *item, BaseType_t *woken);
BaseType_t xQueueReceive(QueueHandle_t queue, void *item, TickType_t wait);

#endif
