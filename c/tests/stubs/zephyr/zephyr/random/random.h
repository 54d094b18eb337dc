#include <stddef.h>

int sys_csrand_get(void *dst, size_t len);
