#ifndef FLASH_H
#define FLASH_H
#include <stddef.h>
#include <stdint.h>

#define FLASH_PAGE_SIZE (1u << 8)
#define FLASH_SECTOR_SIZE (1u << 12)
extern uint8_t _FS_start[];
#define XIP_BASE ((uintptr_t)_FS_start)
extern "C" void flash_range_erase(uint32_t flash_offs, size_t count);
extern "C" void flash_range_program(uint32_t flash_offs, const uint8_t *data, size_t count);
#endif
