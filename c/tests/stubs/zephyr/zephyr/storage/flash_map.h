#ifndef FLASH_MAP_H
#define FLASH_MAP_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct flash_area {
    uint8_t fa_id;
};
enum { partition_id_record_partition, partition_id_ledger_partition };
#define FIXED_PARTITION_ID(label) partition_id_##label
int flash_area_open(uint8_t id, const struct flash_area **fa);
int flash_area_read(const struct flash_area *fa, off_t off, void *dst, size_t len);
int flash_area_write(const struct flash_area *fa, off_t off, const void *src, size_t len);
int flash_area_erase(const struct flash_area *fa, off_t off, size_t len);
#endif
