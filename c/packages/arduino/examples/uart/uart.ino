// A device on a Raspberry Pi Pico, with the core arduino-pico. It learns activities together with
// other devices, and names the activity of a new window after each round. Serial1 is the line to
// the coordinator, and Serial prints. In the menu, leave 64 KB or more of the flash to the file
// system: its first sector has the provisioning record, and the next two have the ledger.
#include <smolfed.h>

#include <hardware/flash.h>
#include <hardware/structs/rosc.h>
#include <hardware/sync.h>

#include "recipe.h"
extern "C" {
#include "sensor.h"
}

// The file system, from the linker.
extern uint8_t _FS_start[];

static const uint32_t SECTOR = FLASH_SECTOR_SIZE;
alignas(8) static uint8_t memory[4096];
static sf_device *device;
static sensor motion;
static int16_t rows[SMOLFED_LENGTH][SENSOR_CHANNELS];
static uint32_t heard;

// The library calls this if it finds an error in itself.
extern "C" void sf_panic(void) {
  rp2040.reboot();
  for (;;) {
  }
}

static void stopUnless(sf_status status) {
  while (status != SF_OK) {
    Serial.println(sf_strerror(status));
    delay(1000);
  }
}

static uint32_t flashOffset(uint32_t at) { return (uint32_t)((uintptr_t)_FS_start - XIP_BASE) + at; }

// Programs erased bytes, or clears bytes. The flash takes whole pages. Ones change nothing, so the
// other bytes of a page stay.
static void program(uint32_t at, const uint8_t *from, size_t count) {
  uint32_t offset = flashOffset(at);
  while (count > 0) {
    uint8_t page[FLASH_PAGE_SIZE];
    uint32_t start = offset % FLASH_PAGE_SIZE;
    size_t part = min(count, (size_t)(FLASH_PAGE_SIZE - start));
    memset(page, 0xFF, sizeof page);
    memcpy(page + start, from, part);
    uint32_t interrupts = save_and_disable_interrupts();
    flash_range_program(offset - start, page, sizeof page);
    restore_interrupts(interrupts);
    offset += part;
    from += part;
    count -= part;
  }
}

static int32_t flashRead(void *, uint32_t at, uint8_t *to, size_t count) {
  memcpy(to, _FS_start + SECTOR + at, count);
  return 0;
}

static int32_t flashWrite(void *, uint32_t at, const uint8_t *from, size_t count) {
  program(SECTOR + at, from, count);
  return memcmp(_FS_start + SECTOR + at, from, count);
}

static int32_t flashErase(void *, uint32_t at, size_t count) {
  uint32_t interrupts = save_and_disable_interrupts();
  flash_range_erase(flashOffset(SECTOR + at), count);
  restore_interrupts(interrupts);
  return 0;
}

// The jitter of the ring oscillator: 256 of its bits become one byte.
static void randomFill(void *, uint8_t *to, size_t count) {
  for (size_t at = 0; at < count; at++) {
    uint8_t byte = 0;
    for (int bit = 0; bit < 256; bit++) {
      byte = (uint8_t)(byte << 1 | byte >> 7) ^ (uint8_t)(rosc_hw->randombit & 1);
    }
    to[at] = byte;
  }
}

// Measures until a window of one activity is complete, and computes its features.
static void measure(int8_t *features) {
  static uint32_t work[SMOLFED_WORK];
  static size_t next, missing;
  do {
    sensor_read(&motion, rows[next]);
    next = (next + 1) % SMOLFED_LENGTH;
    if (motion.row % SENSOR_STRETCH == 0) {
      missing = SMOLFED_LENGTH;
    }
  } while (--missing > 0);
  missing = SMOLFED_STEP;
  stopUnless(sf_window_i8(&smolfed_recipe, rows[0], SMOLFED_LENGTH * SENSOR_CHANNELS, next, work,
                          SMOLFED_WORK, features, SMOLFED_FEATURES));
}

static void openDevice() {
  sf_config config = {};
  config.kind = &SMOLFED_KIND;
  config.features = SMOLFED_FEATURES;
  config.classes = SMOLFED_CLASSES;
  config.samples = SENSOR_WINDOWS;
  config.places = SMOLFED_PLACES;
  config.recipe = &smolfed_recipe;
  config.record = _FS_start;
  config.record_bytes = SECTOR;
  config.ledger.read = flashRead;
  config.ledger.write = flashWrite;
  config.ledger.erase = flashErase;
  config.ledger.page_bytes = SECTOR;
  config.ledger.pages = 2;
  config.random.fill = randomFill;
  stopUnless(sf_open(memory, sizeof memory, &config, &device));
  static const uint8_t zeros[SF_FIRST_KEY_BYTES] = {};
  program(SF_FIRST_KEY_AT, zeros, sizeof zeros);
}

static void send() {
  const uint8_t *bytes = nullptr;
  size_t count = 0;
  while (sf_outgoing(device, &bytes, &count) == SF_OK && count > 0) {
    Serial1.write(bytes, count);
    stopUnless(sf_sent(device));
  }
}

// Names the activity of a new window with the model of each round.
static void use() {
  static uint32_t named = UINT32_MAX;
  uint32_t round = 0;
  if (sf_model_round(device, &round) != SF_OK || round == named) {
    return;
  }
  named = round;
  int8_t features[SMOLFED_FEATURES];
  int32_t scores[SMOLFED_CLASSES];
  uint16_t found = 0;
  measure(features);
  stopUnless(sf_predict_i8(device, features, SMOLFED_FEATURES, scores, SMOLFED_CLASSES, &found));
  Serial.print("activity ");
  Serial.println(found);
}

void setup() {
  Serial.begin(115200);
  Serial1.setFIFOSize(512);
  Serial1.begin(115200);
  uint32_t number = 0;
  stopUnless(sf_record_device(_FS_start, SECTOR, &number));
  motion = sensor_of(number);
  openDevice();
  for (int kept = 0; kept < SENSOR_WINDOWS; kept++) {
    int8_t features[SMOLFED_FEATURES];
    measure(features);
    stopUnless(sf_add_sample_i8(device, features, SMOLFED_FEATURES, motion.activity));
  }
  stopUnless(sf_timeout(device));
  send();
}

void loop() {
  bool hasMore = false;
  stopUnless(sf_train_some(device, 1, &hasMore));
  send();
  while (Serial1.available() > 0) {
    uint8_t byte = (uint8_t)Serial1.read();
    size_t taken = 0;
    while (taken == 0) {
      stopUnless(sf_receive(device, &byte, 1, &taken));
      send();
    }
    heard = millis();
  }
  if (hasMore) {
    heard = millis();
  } else if (millis() - heard >= 500) {
    stopUnless(sf_timeout(device));
    send();
    heard = millis();
  } else {
    use();
  }
}
