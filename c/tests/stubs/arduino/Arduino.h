#ifndef ARDUINO_H
#define ARDUINO_H
#include <algorithm>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

using std::min;

struct SerialPort {
  void begin(unsigned long baud);
  bool setFIFOSize(size_t size);
  int available();
  int read();
  size_t write(const uint8_t *bytes, size_t count);
  size_t print(const char *text);
  size_t println(const char *text);
  size_t println(int number);
};
extern SerialPort Serial, Serial1;

struct RP2040 {
  void reboot();
};
extern RP2040 rp2040;

unsigned long millis();
void delay(unsigned long ms);
void setup();
void loop();
#endif
