#ifndef ESP_ERR_H
#define ESP_ERR_H
#include <stdint.h>

typedef int esp_err_t;
#include <stdlib.h>
#define ESP_ERROR_CHECK(call) ((call) == 0 ? (void)0 : abort())
#endif
