#ifndef KERNEL_H
#define KERNEL_H
#include <stdint.h>

typedef struct {
    int64_t ticks;
} k_timeout_t;
#define K_FOREVER ((k_timeout_t){-1})
#define K_MSEC(ms) ((k_timeout_t){(int64_t)(ms)})
#define ARG_UNUSED(argument) (void)(argument)

struct k_sem {
    unsigned int count, limit;
};
#define K_SEM_DEFINE(name, initial, maximum) struct k_sem name = {initial, maximum}
void k_sem_give(struct k_sem *sem);
int k_sem_take(struct k_sem *sem, k_timeout_t timeout);
int32_t k_sleep(k_timeout_t timeout);
uint32_t k_uptime_get_32(void);
void printk(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#endif
