#ifndef RING_BUFFER_H
#define RING_BUFFER_H
#include <stdint.h>

struct ring_buf {
    uint8_t *buffer;
    uint32_t size;
};
#define RING_BUF_DECLARE(name, size8)                                                              \
    static uint8_t name##_bytes[size8];                                                            \
    static struct ring_buf name = {name##_bytes, size8}
uint32_t ring_buf_put(struct ring_buf *buf, const uint8_t *data, uint32_t size);
uint32_t ring_buf_get(struct ring_buf *buf, uint8_t *data, uint32_t size);
#endif
