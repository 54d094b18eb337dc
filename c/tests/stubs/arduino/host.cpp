// The functions of the core arduino-pico that the sketch calls.
#include "Arduino.h"

#include "../host.h"
#include "hardware/flash.h"
#include "hardware/structs/rosc.h"

// The file system, which is all of the flash here.
alignas(HOST_PAGE) uint8_t _FS_start[16 * HOST_PAGE];

SerialPort Serial, Serial1;
RP2040 rp2040;

// A byte that available() has found.
static uint8_t waiting;
static bool is_waiting;

void SerialPort::begin(unsigned long baud) {
  if (this == &Serial1 && baud == 115200) {
    host_open_line();
  }
}

bool SerialPort::setFIFOSize(size_t size) { return size > 32; }

int SerialPort::available() {
  if (!is_waiting) {
    is_waiting = host_read(&waiting, 1) == 1;
  }
  return is_waiting;
}

int SerialPort::read() {
  is_waiting = false;
  return waiting;
}

size_t SerialPort::write(const uint8_t *bytes, size_t count) {
  host_write(bytes, count);
  return count;
}

size_t SerialPort::print(const char *text) { return (size_t)printf("%s", text); }

size_t SerialPort::println(const char *text) { return (size_t)printf("%s\n", text); }

size_t SerialPort::println(int number) { return (size_t)printf("%d\n", number); }

void RP2040::reboot() { exit(5); }

unsigned long millis() { return (unsigned long)(host_microseconds() / 1000); }

// The sketch stops at an error, and prints it each second.
void delay(unsigned long ms) { exit(ms == 1000 ? 3 : 4); }

RandomBit::operator uint32_t() const {
  uint8_t byte = 0;
  host_random(&byte, 1);
  return byte & 1;
}

rosc_hw_t ring_oscillator;

void flash_range_erase(uint32_t flash_offs, size_t count) {
  if (host_erase(_FS_start, flash_offs, count) != 0) {
    exit(6);
  }
}

void flash_range_program(uint32_t flash_offs, const uint8_t *data, size_t count) {
  if (host_program(_FS_start, flash_offs, data, count, FLASH_PAGE_SIZE) != 0) {
    exit(6);
  }
}

int main() {
  host_load(_FS_start, sizeof _FS_start);
  setup();
  for (;;) {
    loop();
  }
}
