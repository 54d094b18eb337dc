// smolfed for C and C++ firmware. docs/c.md explains it.
// Made of the crate smolfed-c by cbindgen: change that, and not this file.
//
// The arrays and answers of one call do not overlap, and none lies in the memory of the device.
// Functions of the firmware return to the library, and do not call it with the device.

#ifndef SMOLFED_H
#define SMOLFED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A function of `sf_flash` returns this if the operation has begun and is not done. It differs
// from the errors of drivers.
#define SF_FLASH_PENDING 1346784339

// The offset of the first key in a provisioning record. After `sf_open` the ledger has the key,
// and firmware overwrites it with zeros, without an erase.
#define SF_FIRST_KEY_AT 8

// Bytes of the first key.
#define SF_FIRST_KEY_BYTES 40

// A secret of a device in its secure element.
enum sf_slot
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The root of the device's streams.
  SF_SLOT_ROOT = 0,
  // The chain key after an even number of steps: at first, that of provisioning.
  SF_SLOT_EVEN = 1,
  // The chain key after an odd number of steps.
  SF_SLOT_ODD = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum sf_slot sf_slot;
#else
typedef int32_t sf_slot;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The result of a function: 0 for success, or the reason why nothing was done.
enum sf_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success.
  SF_OK = 0,
  // A pointer is null or not aligned.
  SF_POINTER = 1,
  // The memory does not contain an open device.
  SF_NO_DEVICE = 2,
  // Another call is under way, of an interrupt or a thread. A processor without atomic exchange
  // (Cortex-M0, RV32IMC) does not notice other threads: use the device from one thread there.
  SF_BUSY = 3,
  // The memory is too small, or does not begin at a multiple of 8 bytes.
  SF_MEMORY = 4,
  // A size of the configuration is 0 or too large, or the places do not suit the features.
  SF_CONFIG = 5,
  // The provisioning record is missing, cut or damaged, or of another version. Or it is for the
  // other kind of device: one that trains, or one that only infers.
  SF_RECORD = 6,
  // The flash failed, or is too small.
  SF_FLASH = 7,
  // The ledger is blank, and the record has no first key to begin one with.
  SF_LEDGER_BLANK = 8,
  // The ledger is damaged. The device must not take part.
  SF_LEDGER_DAMAGED = 9,
  // This library was built without what the record or the configuration asks for: noise of the
  // device's own, a pseudonym, asynchronous flash or a secure element. The ledger may have
  // begun.
  SF_BUILD = 10,
  // Not while a round is under way.
  SF_PHASE = 11,
  // The model has features or targets of another type.
  SF_TYPE = 12,
  // The model has another number of features or scores.
  SF_LENGTH = 13,
  // A value is not finite.
  SF_NOT_FINITE = 14,
  // The class is not below the number of classes, or the value is not finite.
  SF_TARGET = 15,
  // The device has no model yet.
  SF_NO_MODEL = 16,
  // No round has ended yet.
  SF_NO_ROUND = 17,
  // The recipe is of another kind of features, or differs from the recipe of the record. Or the
  // samples of the record are raw.
  SF_RECIPE = 18,
  // The flash is not done. Call `sf_train_some`.
  SF_PENDING = 19,
  // The secure element is missing, did not answer, or has other secrets.
  SF_ELEMENT = 20,
  // A device that only infers has no samples, and a device that trains has no model files.
  SF_ROLE = 21,
  // The file is not a model file, or is for a model of another shape, or a parameter is not a
  // number.
  SF_FILE = 22,
  // The signature is not the publisher's, or the file is damaged. Or the publisher's key is
  // invalid.
  SF_SIGNATURE = 23,
  // The device has this version or a newer one.
  SF_OLD = 24,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum sf_status sf_status;
#else
typedef int32_t sf_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The state of a device.
enum sf_phase
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Before the first message: `sf_timeout` sends it.
  SF_SILENT = 0,
  // The device opens a session.
  SF_GREETING = 1,
  // The session is open, and the coordinator has not answered.
  SF_READY = 2,
  // Between two rounds.
  SF_IDLE = 3,
  // The device receives the model.
  SF_RECEIVING = 4,
  // The firmware calls `sf_train_some`.
  SF_TRAINING = 5,
  // The device sends the update.
  SF_SENDING = 6,
  // The coordinator refuses the device, which stays silent until the coordinator calls it.
  SF_REFUSED = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum sf_phase sf_phase;
#else
typedef int32_t sf_phase;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The outcome of a round.
enum sf_outcome
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The device has trained.
  SF_UPDATED = 0,
  // The device takes part with an update of zeros, for a reason. The participation is spent.
  SF_ZERO = 1,
  // The device does not take part, for a reason.
  SF_DECLINED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum sf_outcome sf_outcome;
#else
typedef int32_t sf_outcome;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A device in memory of the caller.
typedef struct sf_device sf_device;

// A kind of model of a device that only infers. Programs use its address only.
typedef struct sf_infer_kind sf_infer_kind;

// A kind of model. Programs use its address only.
typedef struct sf_kind sf_kind;

// A feature of a window as an integer: (feature - offset) · multiplier / 2^shift, rounded to the
// nearest integer, halves away from zero, and saturated.
typedef struct sf_scale {
  // Subtracted from the feature.
  int32_t offset;
  // From 1 to 65,535.
  uint16_t multiplier;
  // At most 47.
  uint8_t shift;
} sf_scale;

// A feature of a window as a `float`: (feature - mean) / std of a feature between low and high,
// computed in `double`.
typedef struct sf_range {
  // Smaller features count as this.
  double low;
  // Larger features count as this.
  double high;
  // Subtracted from the feature.
  double mean;
  // Not 0.
  double std;
} sf_range;

// The computation of features. `smolfed data recipe experiment.toml --c` writes one.
typedef struct sf_recipe {
  // The recipe as docs/protocol.md encodes it.
  const uint8_t *bytes;
  // Bytes of the recipe.
  size_t byte_count;
  // One for each feature of a window of an integer model. Null otherwise.
  const struct sf_scale *scales;
  // One for each feature of a window of a `float` model. Null otherwise.
  const struct sf_range *ranges;
  // Every so many rows of a window are read, at least 1.
  uint16_t every;
  // Binary places of integer features.
  uint8_t places;
  // Whether a `float` model reads features in whole counts. Integer models ignore it, because
  // their features always are whole counts.
  bool is_in_counts;
} sf_recipe;

// The flash of a ledger, of models or of a held update, in pages. Addresses count from the first
// page. Each function returns 0, or another number if it failed.
typedef struct sf_flash {
  // Passed to the functions.
  void *context;
  // Reads bytes.
  int32_t (*read)(void*, uint32_t, uint8_t*, size_t);
  // Writes a multiple of 8 bytes, at a multiple of 8, where the flash is erased. The bytes are
  // on the flash when it returns.
  int32_t (*write)(void*, uint32_t, const uint8_t*, size_t);
  // Erases whole pages: all bytes are 0xFF when it returns.
  int32_t (*erase)(void*, uint32_t, size_t);
  // Bytes of a page: a multiple of 8 for a ledger, and of 64 for models or a held update.
  uint32_t page_bytes;
  // Pages.
  uint32_t pages;
  // Null if the other functions wait for the flash. Otherwise they may return
  // `SF_FLASH_PENDING`. This function then tells the result: `SF_FLASH_PENDING`, 0, or another
  // number if the operation failed. For a ledger, it needs a library with the feature
  // `requested`.
  int32_t (*poll)(void*);
} sf_flash;

// A random generator of the hardware.
typedef struct sf_random {
  // Passed to the function.
  void *context;
  // Fills the bytes with random ones, which nobody can predict. It waits until the generator has
  // them.
  void (*fill)(void*, uint8_t*, size_t);
} sf_random;

// A secure element (docs/secure-element.md). Both functions compute HKDF-Expand with SHA-256 of
// the secret in a slot, with an info of at most 20 bytes. Each returns 0, or another number if it
// failed. They need a library with the feature `element`, and are null otherwise.
typedef struct sf_element {
  // Passed to the functions.
  void *context;
  // Writes the 32 bytes of the result and keeps no copy.
  int32_t (*expand)(void*, sf_slot, const uint8_t*, size_t, uint8_t*);
  // Puts the result into the other slot, where it stays when the power fails.
  int32_t (*expand_into)(void*, sf_slot, const uint8_t*, size_t, sf_slot);
} sf_element;

// The configuration of a device.
typedef struct sf_config {
  // The kind of model and its features, such as `&sf_softmax_i8`.
  const struct sf_kind *kind;
  // Features of a sample.
  uint16_t features;
  // The classes of a softmax model, 2 or more. Other models ignore it.
  uint16_t classes;
  // The number of samples that the device keeps.
  uint16_t samples;
  // Binary places of integer features: an integer x stands for x · 2^-places. Models on `float`
  // ignore it.
  uint8_t places;
  // The computation of the features, which the coordinator compares with its experiment. Null if
  // samples are features already.
  const struct sf_recipe *recipe;
  // The provisioning record.
  const uint8_t *record;
  // Bytes of its page.
  size_t record_bytes;
  // Flash of the ledger.
  struct sf_flash ledger;
  // The random generator.
  struct sf_random random;
  // The secure element, or all zeros.
  struct sf_element element;
} sf_config;

// The configuration of a device that only infers. It needs a library with the feature `delivery`.
typedef struct sf_infer {
  // The kind of model and its features, such as `&sf_infer_softmax_i8`.
  const struct sf_infer_kind *kind;
  // Features of a sample.
  uint16_t features;
  // The classes of a softmax model, 2 or more. Other models ignore it.
  uint16_t classes;
  // Binary places of integer features: an integer x stands for x · 2^-places. Models on `float`
  // ignore it.
  uint8_t places;
  // The computation of the features, which files must name. Null if samples are features
  // already.
  const struct sf_recipe *recipe;
  // The provisioning record, from `smolfed provision --infer`. Its key never changes, so do not
  // overwrite it.
  const uint8_t *record;
  // Bytes of its page.
  size_t record_bytes;
  // The public key of the publisher: the 32 bytes whose digits are in publisher.pub.
  const uint8_t *publisher;
  // Flash of the models, with as many pages as `sf_infer_pages` says or more. The bytes of a
  // page are a multiple of 64, and must not change in an update of the firmware. If its
  // functions return `SF_FLASH_PENDING`, the device calls `poll` until they are done. This does
  // not need the feature `requested`.
  struct sf_flash models;
  // The random generator. Each session needs 16 bytes of it that never repeat.
  struct sf_random random;
} sf_infer;

// The last round. It describes private data and must not leave the device.
typedef struct sf_round {
  // The round's number.
  uint32_t round;
  // Whether there is an update.
  sf_outcome outcome;
  // The reason, a code of docs/protocol.md ("reason"). 0 after an update.
  uint8_t reason;
} sf_round;

// The samples of a device. The counts describe private data and must not leave the device.
typedef struct sf_sample_counts {
  // Samples.
  size_t samples;
  // Features with the same value in all samples. Perhaps a sensor has stopped.
  size_t constant;
  // Integers at the ends of their type, in all samples. Perhaps there are too many places.
  size_t saturated;
} sf_sample_counts;

// How long a device stays awake, and how fast it is. It needs a library with the feature `sleep`.
typedef struct sf_wake {
  // Milliseconds from now on.
  uint32_t awake_ms;
  // The most milliseconds from a request to its answer.
  uint32_t round_trip_ms;
  // The least bytes per second over the line, in one direction. At least 1.
  uint32_t bytes_per_second;
  // The least samples per second in training, with the local steps. At least 1. Leave a margin
  // for writes to flash.
  uint32_t samples_per_second;
  // Whether an update outlives the sleep, by `sf_hold` or in RAM that keeps its content. Then
  // only the model must arrive before the time is over. With `sf_hold`, the device must also
  // finish its training before it loses its RAM.
  bool resumes;
} sf_wake;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Softmax regression on `float`.
extern const struct sf_infer_kind sf_infer_softmax_f32;

// Softmax regression on `int8_t`, in integers.
extern const struct sf_infer_kind sf_infer_softmax_i8;

// Softmax regression on `int16_t`, in integers.
extern const struct sf_infer_kind sf_infer_softmax_i16;

// Logistic regression on `float`: classes 0 and 1.
extern const struct sf_infer_kind sf_infer_logistic_f32;

// Logistic regression on `int8_t`, in integers.
extern const struct sf_infer_kind sf_infer_logistic_i8;

// Logistic regression on `int16_t`, in integers.
extern const struct sf_infer_kind sf_infer_logistic_i16;

// Linear regression on `float`.
extern const struct sf_infer_kind sf_infer_linear_f32;

// Linear regression on `int8_t`, in integers.
extern const struct sf_infer_kind sf_infer_linear_i8;

// Linear regression on `int16_t`, in integers.
extern const struct sf_infer_kind sf_infer_linear_i16;

// Softmax regression on `float`.
extern const struct sf_kind sf_softmax_f32;

// Softmax regression on `int8_t`, in integers.
extern const struct sf_kind sf_softmax_i8;

// Softmax regression on `int16_t`, in integers.
extern const struct sf_kind sf_softmax_i16;

// Logistic regression on `float`: classes 0 and 1.
extern const struct sf_kind sf_logistic_f32;

// Logistic regression on `int8_t`, in integers.
extern const struct sf_kind sf_logistic_i8;

// Logistic regression on `int16_t`, in integers.
extern const struct sf_kind sf_logistic_i16;

// Linear regression on `float`.
extern const struct sf_kind sf_linear_f32;

// Linear regression on `int8_t`, in integers.
extern const struct sf_kind sf_linear_i8;

// Linear regression on `int16_t`, in integers.
extern const struct sf_kind sf_linear_i16;

// Returns the bytes of memory that a device needs, or 0 if the configuration is wrong.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: `config` is null or points to a configuration. The function reads only the kind
// and the sizes.
size_t sf_memory_bytes(const struct sf_config *config);

// Opens a device in memory of the caller. The first start begins the ledger.
//
// It reads the ledger, four records of 64 bytes. The first start also erases a page, and writes
// and reads two records. It waits for asynchronous flash.
//
// Interrupts: no, and no interrupt uses this device in the meantime. Longest time: that of the
// flash, and three checksums of the record.
//
// # Safety
// Preconditions: `memory` has `bytes` bytes at a multiple of 8, as many as `sf_memory_bytes` says
// or more, which are the device's until `sf_close`. Nobody copies or restores them. The contexts,
// the functions and the bytes of the recipe stay until then as well. **No other open device has
// the same ledger**, because two devices would spend one participation on two releases.
sf_status sf_open(uint8_t *memory,
                  size_t bytes,
                  const struct sf_config *config,
                  struct sf_device **device);

// Closes a device. Its memory is filled with zeros and belongs to the caller again. The ledger
// stays on its flash.
//
// Interrupts: no, and no interrupt uses this device in the meantime. Longest time: grows with the
// memory. It waits for asynchronous flash.
//
// # Safety
// Preconditions: as `sf_phase_of`.
sf_status sf_close(struct sf_device *device);

// Returns the version of the library as a constant text.
//
// Interrupts: yes. Longest time: constant.
const char *sf_version(void);

// Writes the features of an image for a model on `float`.
//
// Interrupts: yes, unless it interrupts a call with the same memory. Longest time: grows with the
// pixels.
//
// # Safety
// Preconditions: `recipe` is null or points to a recipe. `pixels` has `count` pixels, row by row.
// A colour image has all red, then all green, then all blue ones. `features` has room for
// `feature_count` features.
sf_status sf_image_f32(const struct sf_recipe *recipe,
                       const uint8_t *pixels,
                       size_t count,
                       float *features,
                       size_t feature_count);

// Writes the features of an image for a model on `int8_t`.
//
// Interrupts: yes, unless it interrupts a call with the same memory. Longest time: grows with the
// pixels.
//
// # Safety
// Preconditions: as `sf_image_f32`. `sums` has room for `sum_count` words, as many as there are
// features.
sf_status sf_image_i8(const struct sf_recipe *recipe,
                      const uint8_t *pixels,
                      size_t count,
                      uint32_t *sums,
                      size_t sum_count,
                      int8_t *features,
                      size_t feature_count);

// Writes the features of an image for a model on `int16_t`.
//
// Interrupts: yes, unless it interrupts a call with the same memory. Longest time: grows with the
// pixels.
//
// # Safety
// Preconditions: as `sf_image_i8`.
sf_status sf_image_i16(const struct sf_recipe *recipe,
                       const uint8_t *pixels,
                       size_t count,
                       uint32_t *sums,
                       size_t sum_count,
                       int16_t *features,
                       size_t feature_count);

// Returns the bytes of memory that a device that only infers needs, or 0 if the configuration is
// wrong.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: `config` is null or points to a configuration. The function reads only the kind
// and the sizes.
size_t sf_infer_bytes(const struct sf_infer *config);

// Returns the pages of flash that the models of a device need, or 0 if the configuration is wrong.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: `config` is null or points to a configuration. The function reads only the kind,
// the sizes and the bytes of a page.
uint32_t sf_infer_pages(const struct sf_infer *config);

// Opens a device that only infers, in memory of the caller. It loads the newest model of its
// flash. Blank flash has none.
//
// The functions for the line, the model, predictions and the end are the same as on other devices.
// Those that add or forget samples return `SF_ROLE`.
//
// Interrupts: no, and no interrupt uses this device in the meantime. Longest time: reading two
// model files and verifying two signatures.
//
// # Safety
// Preconditions: `memory` has `bytes` bytes at a multiple of 8, as many as `sf_infer_bytes` says
// or more, which are the device's until `sf_close`. The contexts and the functions stay until then
// as well. No other open device has the same flash of models.
sf_status sf_infer_open(uint8_t *memory,
                        size_t bytes,
                        const struct sf_infer *config,
                        struct sf_device **device);

// Asks for a newer version, on a line where the coordinator cannot call: for example each hour. It
// does nothing before the first session and during a transfer.
//
// Interrupts: no. Longest time: composing a frame (docs/targets.md).
//
// # Safety
// Preconditions: as `sf_phase_of`.
sf_status sf_infer_ask(struct sf_device *device);

// Installs a whole model file that came by other means, and tells its version. If it refuses the
// file, it keeps its model. A power cut at any time leaves the old model or the new one. A file
// that arrives over the line meanwhile begins again.
//
// Interrupts: no. Longest time: two verifications of a signature, and writing the file to flash.
//
// # Safety
// Preconditions: as `sf_phase_of`. `file` has `count` bytes outside of the flash of models, and
// `version` is null or has room for the answer.
sf_status sf_infer_install(struct sf_device *device,
                           const uint8_t *file,
                           size_t count,
                           uint32_t *version);

// Tells the version of the last file from the line that the device refused, and the reason.
// Version 0 and `SF_OK` if it has refused none since the last file from the line. Failures of the
// flash are not refusals.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: as `sf_phase_of`. `version` and `reason` are null or have room for the answers.
sf_status sf_infer_refused(struct sf_device *device, uint32_t *version, sf_status *reason);

// Tells the state of the device.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: `device` is null or comes from `sf_open` or `sf_infer_open`. `phase` is null or
// has room for the answer.
sf_status sf_phase_of(struct sf_device *device, sf_phase *phase);

// Lends the bytes for the line: a whole frame, or nothing. They stay until `sf_sent`,
// `sf_receive`, `sf_timeout`, `sf_train_some` or `sf_close`.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: as `sf_phase_of`. `bytes` and `count` are null or have room for the answers.
sf_status sf_outgoing(struct sf_device *device, const uint8_t **bytes, size_t *count);

// Tells the device that the bytes of `sf_outgoing` are on the line. More bytes may follow at once.
//
// Interrupts: no. Longest time: composing a frame (docs/targets.md).
//
// # Safety
// Preconditions: as `sf_phase_of`.
sf_status sf_sent(struct sf_device *device);

// Takes bytes from the line, up to the end of a frame, and tells their number. Pass the rest to
// the next call, after the outgoing bytes.
//
// Interrupts: no. Longest time: opening a frame and composing one (docs/targets.md). A device that
// only infers also writes to flash, and verifies a signature at the end of a file.
//
// # Safety
// Preconditions: as `sf_phase_of`. `bytes` has `count` bytes, and `taken` is null or has room for
// the answer.
sf_status sf_receive(struct sf_device *device, const uint8_t *bytes, size_t count, size_t *taken);

// Tells the device that the line was silent, for example for half a second. The device repeats a
// message without an answer, or opens a new session. The first call opens the first session.
//
// Interrupts: no. Longest time: composing a frame (docs/targets.md).
//
// # Safety
// Preconditions: as `sf_phase_of`.
sf_status sf_timeout(struct sf_device *device);

// Counts the frames that the device ignored: damaged, not authentic, late or out of turn.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: as `sf_phase_of`. `count` is null or has room for the answer.
sf_status sf_refused_frames(struct sf_device *device, uint32_t *count);

// Sets the number of chunks that the device requests or sends before it waits for an answer. The
// default is 1. A socket is faster with more, up to 32.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: as `sf_phase_of`.
sf_status sf_set_window(struct sf_device *device, uint8_t chunks);

// Tells the round whose model the device has, or the version on a device that only infers.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: as `sf_phase_of`. `round` is null or has room for the answer.
sf_status sf_model_round(struct sf_device *device, uint32_t *round);

// Lends the parameters of the model, or the bits of its integer weights, in the order of
// docs/inference.md. They stay until the next
// call with the device.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: as `sf_phase_of`. `parameters` and `count` are null or have room for the answers.
sf_status sf_model_parameters(struct sf_device *device, const float **parameters, size_t *count);

// Writes the score of each class of a new sample, and the most likely class. A model of a value
// writes the value as its only score, and class 0.
//
// Interrupts: no. Longest time: a prediction (docs/targets.md).
//
// # Safety
// Preconditions: as `sf_phase_of`. `features` has `count` values, `scores` has room for
// `score_count`, and `class` is null or has room for the answer.
sf_status sf_predict_f32(struct sf_device *device,
                         const float *features,
                         size_t count,
                         float *scores,
                         size_t score_count,
                         uint16_t *class_);

// Writes the score of each class of a new sample, and the most likely class. A model of a value
// writes the value as its only score, and class 0. Scores are in units of 2⁻¹⁶.
//
// Interrupts: no. Longest time: a prediction (docs/targets.md).
//
// # Safety
// Preconditions: as `sf_phase_of`. `features` has `count` values, `scores` has room for
// `score_count`, and `class` is null or has room for the answer.
sf_status sf_predict_i8(struct sf_device *device,
                        const int8_t *features,
                        size_t count,
                        int32_t *scores,
                        size_t score_count,
                        uint16_t *class_);

// Writes the score of each class of a new sample, and the most likely class. A model of a value
// writes the value as its only score, and class 0. Scores are in units of 2⁻¹⁶.
//
// Interrupts: no. Longest time: a prediction (docs/targets.md).
//
// # Safety
// Preconditions: as `sf_phase_of`. `features` has `count` values, `scores` has room for
// `score_count`, and `class` is null or has room for the answer.
sf_status sf_predict_i16(struct sf_device *device,
                         const int16_t *features,
                         size_t count,
                         int32_t *scores,
                         size_t score_count,
                         uint16_t *class_);

// Turns the scores of a prediction into the probability of each class, or of class 1 if there is
// one score.
//
// Interrupts: no. Longest time: an exponential for each score.
//
// # Safety
// Preconditions: as `sf_phase_of`. `scores` has `count` scores.
sf_status sf_probabilities_f32(struct sf_device *device, float *scores, size_t count);

// Turns the scores of a prediction into the probability of each class, or of class 1 if there is
// one score. The unit is 2⁻¹⁶: certainty is 65,536.
//
// Interrupts: no. Longest time: an exponential for each score.
//
// # Safety
// Preconditions: as `sf_phase_of`. `scores` has `count` scores.
sf_status sf_probabilities_i32(struct sf_device *device, int32_t *scores, size_t count);

// Tells the device number of a provisioning record.
//
// Interrupts: yes. Longest time: grows with the bytes.
//
// # Safety
// Preconditions: `record` has `count` bytes. `device` is null or has room for the answer.
sf_status sf_record_device(const uint8_t *record, size_t count, uint32_t *device);

// Does the next piece of a round, with at most `most` samples, and tells whether the round has
// more pieces. The first piece writes the ledger. Without a round it does nothing.
//
// Asynchronous flash may leave a piece unfinished. Other functions then return `SF_PENDING` until
// a call of this function finishes the piece.
//
// Interrupts: no. Longest time: a piece (docs/targets.md, "longest piece"), or writing the ledger.
//
// # Safety
// Preconditions: as `sf_phase_of`. `has_more` is null or has room for the answer.
sf_status sf_train_some(struct sf_device *device, uint32_t most, bool *has_more);

// Counts the rounds in which the device has taken part in its life.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: as `sf_phase_of`. `count` is null or has room for the answer.
sf_status sf_participations(struct sf_device *device, uint32_t *count);

// Counts the rounds in which the device may still take part in its life.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: as `sf_phase_of`. `count` is null or has room for the answer.
sf_status sf_participations_left(struct sf_device *device, uint32_t *count);

// Tells how the last round went.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: as `sf_phase_of`. `round` is null or has room for the answer.
sf_status sf_last_round(struct sf_device *device, struct sf_round *round);

// Adds a sample of a class. It replaces the oldest sample if the memory is full. A sample that is
// refused changes nothing and spends no participation.
//
// Interrupts: no. Longest time: grows with the features.
//
// # Safety
// Preconditions: as `sf_phase_of`. `features` has `count` values.
sf_status sf_add_sample_f32(struct sf_device *device,
                            const float *features,
                            size_t count,
                            uint16_t class_);

// Adds a sample of a class. It replaces the oldest sample if the memory is full. A sample that is
// refused changes nothing and spends no participation.
//
// Interrupts: no. Longest time: grows with the features.
//
// # Safety
// Preconditions: as `sf_phase_of`. `features` has `count` values.
sf_status sf_add_sample_i8(struct sf_device *device,
                           const int8_t *features,
                           size_t count,
                           uint16_t class_);

// Adds a sample of a class. It replaces the oldest sample if the memory is full. A sample that is
// refused changes nothing and spends no participation.
//
// Interrupts: no. Longest time: grows with the features.
//
// # Safety
// Preconditions: as `sf_phase_of`. `features` has `count` values.
sf_status sf_add_sample_i16(struct sf_device *device,
                            const int16_t *features,
                            size_t count,
                            uint16_t class_);

// Adds a sample of a value. It replaces the oldest sample if the memory is full. A sample that is
// refused changes nothing and spends no participation.
//
// Interrupts: no. Longest time: grows with the features.
//
// # Safety
// Preconditions: as `sf_phase_of`. `features` has `count` values.
sf_status sf_add_value_f32(struct sf_device *device,
                           const float *features,
                           size_t count,
                           float value);

// Adds a sample of a value. It replaces the oldest sample if the memory is full. A sample that is
// refused changes nothing and spends no participation.
//
// Interrupts: no. Longest time: grows with the features.
//
// # Safety
// Preconditions: as `sf_phase_of`. `features` has `count` values.
sf_status sf_add_value_i8(struct sf_device *device,
                          const int8_t *features,
                          size_t count,
                          float value);

// Adds a sample of a value. It replaces the oldest sample if the memory is full. A sample that is
// refused changes nothing and spends no participation.
//
// Interrupts: no. Longest time: grows with the features.
//
// # Safety
// Preconditions: as `sf_phase_of`. `features` has `count` values.
sf_status sf_add_value_i16(struct sf_device *device,
                           const int16_t *features,
                           size_t count,
                           float value);

// Adds the samples of a provisioning record. The last ones stay if the memory is too small. For an
// integer model it rounds the features. If it refuses a sample, it has added those before.
//
// Interrupts: no. Longest time: grows with the bytes of the record.
//
// # Safety
// Preconditions: as `sf_phase_of`. `record` has `count` bytes. The record lies at a multiple of
// four bytes.
sf_status sf_add_record(struct sf_device *device, const uint8_t *record, size_t count);

// Counts the samples of the device.
//
// Interrupts: no. Longest time: grows with the features of all samples.
//
// # Safety
// Preconditions: as `sf_phase_of`. `counts` is null or has room for the answer.
sf_status sf_count_samples(struct sf_device *device, struct sf_sample_counts *counts);

// Forgets all samples and fills their memory with zeros. During training it returns `SF_PHASE`.
//
// Interrupts: no. Longest time: constant.
//
// # Safety
// Preconditions: as `sf_phase_of`.
sf_status sf_forget_samples(struct sf_device *device);

// Sets how long the device stays awake from now on. Until the next call it declines rounds that
// may take longer, and its ledger does not count them. Call it before `sf_receive`, with the time
// left. Without a call, no round takes too long. A waiting update is sent whatever time is left.
//
// Interrupts: no. Longest time: constant.
//
// # Safety
// Preconditions: as `sf_phase_of`. `wake` is null or points to the times.
sf_status sf_set_awake(struct sf_device *device, const struct sf_wake *wake);

// Tells the pages of flash that hold an update. The bytes of a page are a multiple of 64.
//
// Interrupts: yes. Longest time: constant.
//
// # Safety
// Preconditions: as `sf_phase_of`. `pages` is null or has room for the answer.
sf_status sf_held_pages(struct sf_device *device, uint32_t page_bytes, uint32_t *pages);

// Writes the update that waits to be sent, unless the flash has it already. Call it as soon as the
// phase is `SF_SENDING`, and in any phase before the RAM is lost. `held` is false if nothing was
// written: the flash has the update, or none waits, as during training. After `SF_FLASH`, the
// update in RAM is still sent. **Under central trust, the flash then has a private update without
// noise** until `sf_release` erases it.
//
// It waits for asynchronous flash. After a power cut, `sf_resume` finds the whole update or none.
//
// Interrupts: no. Longest time: that of the flash, for erasing all its pages and writing half.
//
// # Safety
// Preconditions: as `sf_phase_of`. `flash` is null or points to the functions of a flash with as
// many pages as `sf_held_pages` says or more, which has no other use. The functions are called
// during the call only. Firmware with another model or other pages erases the flash first. `held`
// is null or has room for the answer.
sf_status sf_hold(struct sf_device *device, const struct sf_flash *flash, bool *held);

// Reads the held update, after `sf_open` and before anything is sent. The device sends the same
// integers, in the same participation, when the coordinator invites it to that round again. It
// skips updates of another ledger, another model or an earlier round, and damaged ones. `resumed`
// is false if there was none.
//
// It waits for asynchronous flash.
//
// Interrupts: no. Longest time: that of the flash, for reading its pages.
//
// # Safety
// Preconditions: as `sf_hold`. `resumed` is null or has room for the answer.
sf_status sf_resume(struct sf_device *device, const struct sf_flash *flash, bool *resumed);

// Erases the held update once nobody waits for it: the coordinator has it or has given it up, or
// another round has begun. It also erases parts of an update whose write or erase was interrupted.
// Call it after messages, at each wake, and again after `SF_FLASH`. It does nothing before the
// device has sent anything. `erased` is false if nothing was erased.
//
// If the answer of the coordinator was lost, the update stays until another round begins. Firmware
// that takes part in no further round erases the pages by itself.
//
// It waits for asynchronous flash.
//
// Interrupts: no. Longest time: that of the flash, for reading and erasing all its pages.
//
// # Safety
// Preconditions: as `sf_hold`. `erased` is null or has room for the answer.
sf_status sf_release(struct sf_device *device, const struct sf_flash *flash, bool *erased);

// Returns a status in words, as a constant text. An unknown number has a text as well.
//
// Interrupts: yes. Longest time: constant.
const char *sf_strerror(int32_t status);

// Writes the features of a window for a model on `int8_t`.
//
// Interrupts: yes, unless it interrupts a call with the same memory. Longest time: grows with the
// rows.
//
// # Safety
// Preconditions: `recipe` is null or points to a recipe. `rows` has `count` counts, row by row
// with all channels. `first` is the oldest row: 0 unless the rows are a ring. `work` has room for
// `work_count` words, as many as a window has samples of a channel, rounded up to a power of two.
// `features` has room for `feature_count` features.
sf_status sf_window_i8(const struct sf_recipe *recipe,
                       const int16_t *rows,
                       size_t count,
                       size_t first,
                       uint32_t *work,
                       size_t work_count,
                       int8_t *features,
                       size_t feature_count);

// Writes the features of a window for a model on `int16_t`.
//
// Interrupts: yes, unless it interrupts a call with the same memory. Longest time: grows with the
// rows.
//
// # Safety
// Preconditions: as `sf_window_i8`.
sf_status sf_window_i16(const struct sf_recipe *recipe,
                        const int16_t *rows,
                        size_t count,
                        size_t first,
                        uint32_t *work,
                        size_t work_count,
                        int16_t *features,
                        size_t feature_count);

// Writes the features of a window for a model on `float`.
//
// Interrupts: yes, unless it interrupts a call with the same memory. Longest time: grows with the
// rows.
//
// # Safety
// Preconditions: as `sf_window_i8`.
sf_status sf_window_f32(const struct sf_recipe *recipe,
                        const int16_t *rows,
                        size_t count,
                        size_t first,
                        uint32_t *work,
                        size_t work_count,
                        float *features,
                        size_t feature_count);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SMOLFED_H */

#ifdef __cplusplus
extern "C" {
#endif

// The firmware provides it on bare metal: the library calls it if it breaks a promise of its own.
// Restart there. If it returns, it is called again.
void sf_panic(void);

#ifdef __cplusplus
}
#endif
