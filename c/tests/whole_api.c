// Calls every function of smolfed.h, for sanitizers: devices of all kinds through two rounds, from
// the frames that tests/rounds.rs has written to a folder. All memory is as large as promised and no
// larger, so that AddressSanitizer sees each byte beyond it. tests/sanitizers.sh compiles and runs it.
#include "../examples/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The device of tests/device/board.rs.
enum { DEVICE = 3, BUDGET = 5, FEATURES = 4, CLASSES = 3, SAMPLES = 5 };
enum { PLACES = 6, WIDE_PLACES = 12, PAGE = 512 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

typedef struct {
    uint8_t *at;
    size_t count;
} bytes;

// Memory of exactly this size, for it to be freed.
static void *take(size_t count) {
    void *memory = malloc(count > 0 ? count : 1);
    CHECK(memory != NULL);
    return memory;
}

static void *copy(const void *from, size_t count) { return memcpy(take(count), from, count); }

static bytes load(const char *folder, const char *name, const char *end) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, end);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    bytes found = {NULL, (size_t)ftell(file)};
    rewind(file);
    found.at = take(found.count);
    CHECK(fread(found.at, 1, found.count, file) == found.count);
    fclose(file);
    return found;
}

// Flash of two pages, which must be erased before it is written.
static int32_t flash_read(void *context, uint32_t at, uint8_t *to, size_t count) {
    memcpy(to, (uint8_t *)context + at, count);
    return 0;
}

static int32_t flash_write(void *context, uint32_t at, const uint8_t *from, size_t count) {
    uint8_t *place = (uint8_t *)context + at;
    CHECK(at % 8 == 0 && count % 8 == 0);
    for (size_t byte = 0; byte < count; byte++) {
        CHECK(place[byte] == 0xFF);
        place[byte] = from[byte];
    }
    return 0;
}

static int32_t flash_erase(void *context, uint32_t at, size_t count) {
    CHECK(at % PAGE == 0 && count % PAGE == 0);
    memset((uint8_t *)context + at, 0xFF, count);
    return 0;
}

// The bytes that the frames of the transcripts answer to.
static void random_fill(void *context, uint8_t *to, size_t count) {
    (void)context;
    memset(to, 0x5A, count);
}

typedef enum { F32, I8, I16 } type;

typedef struct {
    const char *name;
    const sf_kind *kind;
    type type;
    bool is_value;
    size_t outputs;
} model;

static sf_status add(sf_device *device, const model *model, int number) {
    float floats[FEATURES];
    int8_t small[FEATURES];
    int16_t wide[FEATURES];
    for (int at = 0; at < FEATURES; at++) {
        floats[at] = (float)number / 8;
        small[at] = (int8_t)(number * 3 - at);
        wide[at] = (int16_t)(number * 100 - at);
    }
    uint16_t class = (uint16_t)(number % 2);
    sf_status status;
    void *row;
    if (model->type == F32) {
        row = copy(floats, sizeof floats);
        status = model->is_value ? sf_add_value_f32(device, row, FEATURES, class)
                                 : sf_add_sample_f32(device, row, FEATURES, class);
    } else if (model->type == I8) {
        row = copy(small, sizeof small);
        status = model->is_value ? sf_add_value_i8(device, row, FEATURES, class)
                                 : sf_add_sample_i8(device, row, FEATURES, class);
    } else {
        row = copy(wide, sizeof wide);
        status = model->is_value ? sf_add_value_i16(device, row, FEATURES, class)
                                 : sf_add_sample_i16(device, row, FEATURES, class);
    }
    free(row);
    return status;
}

// Reads every byte that waits, as a line does.
static void send(sf_device *device) {
    for (;;) {
        const uint8_t *outgoing = NULL;
        size_t count = 0;
        CHECK(sf_outgoing(device, &outgoing, &count) == SF_OK);
        if (count == 0) {
            return;
        }
        CHECK(outgoing[count - 1] == 0);
        free(copy(outgoing, count));
        CHECK(sf_sent(device) == SF_OK);
    }
}

static void train(sf_device *device, const model *model) {
    sf_phase phase = SF_SILENT;
    bool has_more = true;
    CHECK(sf_phase_of(device, &phase) == SF_OK);
    if (phase == SF_TRAINING) {
        CHECK(add(device, model, 1) == SF_PHASE && sf_forget_samples(device) == SF_PHASE);
    }
    while (has_more) {
        CHECK(sf_train_some(device, 2, &has_more) == SF_OK);
    }
}

// Holds an update that waits. `flash` has room for it.
static void hold(sf_device *device, const sf_flash *flash) {
    uint32_t pages = 0;
    bool held = false;
    CHECK(sf_held_pages(device, PAGE, &pages) == SF_OK && pages == flash->pages);
    CHECK(sf_hold(device, flash, &held) == SF_OK);
}

// Plays the frames of a coordinator, each in memory of its own.
static void play(sf_device *device, const model *model, bytes frames, const sf_flash *flash) {
    CHECK(sf_set_window(device, 2) == SF_OK && sf_timeout(device) == SF_OK);
    send(device);
    for (size_t at = 0; at < frames.count;) {
        const uint8_t *end = memchr(frames.at + at, 0, frames.count - at);
        CHECK(end != NULL);
        size_t count = (size_t)(end - (frames.at + at)) + 1;
        uint8_t *frame = copy(frames.at + at, count);
        for (size_t given = 0; given < count;) {
            size_t taken = 0;
            CHECK(sf_receive(device, frame + given, count - given, &taken) == SF_OK && taken > 0);
            given += taken;
        }
        free(frame);
        send(device);
        train(device, model);
        hold(device, flash);
        send(device);
        at += count;
    }
}

static sf_status predict(sf_device *device, const model *model, size_t outputs, uint16_t *class) {
    const float floats[FEATURES] = {0.5f, -0.25f, 1, 0};
    const int8_t small[FEATURES] = {127, -128, 1, 0};
    const int16_t wide[FEATURES] = {32767, -32768, 1, 0};
    float *probable = take(outputs * sizeof *probable);
    int32_t *scores = take(outputs * sizeof *scores);
    sf_status status;
    if (model->type == F32) {
        status = sf_predict_f32(device, floats, FEATURES, probable, outputs, class);
        if (status == SF_OK) {
            CHECK(sf_probabilities_f32(device, probable, outputs) == SF_OK);
            CHECK(model->is_value || (probable[0] >= 0 && probable[0] <= 1));
        }
    } else {
        status = model->type == I8
                     ? sf_predict_i8(device, small, FEATURES, scores, outputs, class)
                     : sf_predict_i16(device, wide, FEATURES, scores, outputs, class);
        if (status == SF_OK) {
            CHECK(sf_probabilities_i32(device, scores, outputs) == SF_OK);
            CHECK(model->is_value || (scores[0] >= 0 && scores[0] <= 65536));
        }
    }
    free(probable);
    free(scores);
    return status;
}

static void check_answers(sf_device *device, const model *model) {
    sf_round last;
    uint32_t participations = 0, refused = 9, round = 0;
    uint16_t class = UINT16_MAX;
    CHECK(sf_last_round(device, &last) == SF_OK);
    CHECK(last.round == 2 && last.outcome == SF_UPDATED && last.reason == 0);
    CHECK(sf_participations(device, &participations) == SF_OK && participations == 2);
    uint32_t left = 0;
    CHECK(sf_participations_left(device, &left) == SF_OK && left == BUDGET - 2);
    CHECK(sf_refused_frames(device, &refused) == SF_OK && refused == 0);
    const float *parameters = NULL;
    size_t parameter_count = 0;
    CHECK(sf_model_parameters(device, &parameters, &parameter_count) == SF_OK);
    CHECK(parameter_count == (FEATURES + 1) * model->outputs);
    free(copy(parameters, parameter_count * sizeof *parameters));
    CHECK(sf_model_round(device, &round) == SF_OK && round == 2);
    CHECK(predict(device, model, model->outputs, &class) == SF_OK);
    CHECK(class < CLASSES);
    CHECK(predict(device, model, model->outputs + 1, &class) == SF_LENGTH);
    CHECK(predict(device, model, 0, &class) == SF_LENGTH);
}

static void run(const char *folder, const model *model) {
    bytes record = load(folder, model->name, "record");
    bytes frames = load(folder, model->name, "frames");
    uint8_t *flash = take(2 * PAGE), *update = take(2 * PAGE);
    memset(flash, 0xFF, 2 * PAGE);
    memset(update, 0xFF, 2 * PAGE);
    const sf_flash held = {.context = update,
                           .read = flash_read,
                           .write = flash_write,
                           .erase = flash_erase,
                           .page_bytes = PAGE,
                           .pages = 2};
    const sf_wake wake = {.awake_ms = 1000000,
                          .round_trip_ms = 1,
                          .bytes_per_second = 1000000,
                          .samples_per_second = 1000000,
                          .resumes = true};
    bool done = true;
    const sf_config config = {
        .kind = model->kind,
        .features = FEATURES,
        .classes = CLASSES,
        .samples = SAMPLES,
        .places = model->type == I16 ? WIDE_PLACES : PLACES,
        .record = record.at,
        .record_bytes = record.count,
        .ledger = {.context = flash,
                   .read = flash_read,
                   .write = flash_write,
                   .erase = flash_erase,
                   .page_bytes = PAGE,
                   .pages = 2},
        .random = {NULL, random_fill},
    };
    uint32_t number = 0;
    CHECK(sf_record_device(record.at, record.count, &number) == SF_OK && number == DEVICE);
    size_t count = sf_memory_bytes(&config);
    uint8_t *memory = take(count);
    sf_device *device = NULL;
    CHECK(sf_open(memory, count - 8, &config, &device) == SF_MEMORY && device == NULL);
    CHECK(sf_open(memory, count, &config, &device) == SF_OK);
    CHECK(sf_add_record(device, record.at, record.count) == SF_OK);
    for (int number = 0; number < 7; number++) {
        CHECK(add(device, model, number) == SF_OK);
    }
    sf_sample_counts counts;
    CHECK(sf_count_samples(device, &counts) == SF_OK && counts.samples == SAMPLES);
    CHECK(sf_set_awake(device, &wake) == SF_OK);
    play(device, model, frames, &held);
    check_answers(device, model);
    CHECK(sf_forget_samples(device) == SF_OK && sf_close(device) == SF_OK);
    CHECK(sf_timeout(device) == SF_NO_DEVICE);
    // The same memory again, with the ledger of before, and frames that no key fits any more.
    CHECK(sf_open(memory, count, &config, &device) == SF_OK);
    CHECK(sf_resume(device, &held, &done) == SF_OK && done);
    play(device, model, frames, &held);
    CHECK(sf_release(device, &held, &done) == SF_OK);
    uint32_t refused = 0;
    CHECK(sf_refused_frames(device, &refused) == SF_OK && refused > 0);
    CHECK(sf_close(device) == SF_OK);
    free(memory);
    free(flash);
    free(update);
    free(frames.at);
    free(record.at);
}

// A device that only infers installs a file, and opens a session that nobody answers.
static void infer(const char *folder) {
    enum { MODEL_PAGES = 2 };
    bytes record = load(folder, "infer", "record");
    bytes publisher = load(folder, "infer", "publisher");
    bytes file = load(folder, "infer", "file");
    uint8_t *flash = take(MODEL_PAGES * PAGE);
    memset(flash, 0xFF, MODEL_PAGES * PAGE);
    const model model = {"sf_infer_softmax_f32", NULL, F32, false, CLASSES};
    const sf_infer config = {
        .kind = &sf_infer_softmax_f32,
        .features = FEATURES,
        .classes = CLASSES,
        .record = record.at,
        .record_bytes = record.count,
        .publisher = publisher.at,
        .models = {.context = flash,
                   .read = flash_read,
                   .write = flash_write,
                   .erase = flash_erase,
                   .page_bytes = PAGE,
                   .pages = MODEL_PAGES},
        .random = {NULL, random_fill},
    };
    CHECK(sf_infer_pages(&config) == MODEL_PAGES);
    size_t count = sf_infer_bytes(&config);
    uint8_t *memory = take(count);
    sf_device *device = NULL;
    uint32_t version = 0;
    uint16_t class = UINT16_MAX;
    sf_status reason = SF_BUSY;
    CHECK(sf_infer_open(memory, count, &config, &device) == SF_OK);
    CHECK(predict(device, &model, CLASSES, &class) == SF_NO_MODEL);
    CHECK(sf_infer_install(device, file.at, file.count, &version) == SF_OK && version == 4);
    CHECK(sf_infer_install(device, file.at, file.count, &version) == SF_OLD);
    CHECK(sf_infer_refused(device, &version, &reason) == SF_OK && version == 0 && reason == SF_OK);
    CHECK(predict(device, &model, CLASSES, &class) == SF_OK && class < CLASSES);
    CHECK(sf_timeout(device) == SF_OK);
    send(device);
    CHECK(sf_infer_ask(device) == SF_OK && sf_close(device) == SF_OK);
    free(memory);
    free(flash);
    free(file.at);
    free(publisher.at);
    free(record.at);
}

// Features of a window from each row of a ring.
static void check_windows(void) {
    enum { ROWS = SMOLFED_LENGTH, VALUES = ROWS * SMOLFED_CHANNELS };
    sf_range ranges[SMOLFED_FEATURES];
    for (int at = 0; at < SMOLFED_FEATURES; at++) {
        ranges[at] = (sf_range){-300, 500, at, 17.5};
    }
    sf_recipe recipe = smolfed_recipe;
    recipe.ranges = ranges;
    int16_t *rows = take(VALUES * sizeof *rows);
    uint32_t *work = take(SMOLFED_WORK * sizeof *work);
    int8_t *small = take(SMOLFED_FEATURES * sizeof *small);
    int16_t *wide = take(SMOLFED_FEATURES * sizeof *wide);
    float *floats = take(SMOLFED_FEATURES * sizeof *floats);
    for (int at = 0; at < VALUES; at++) {
        rows[at] = (int16_t)(at * at * 37 % 4001 - 2000);
    }
    for (size_t first = 0; first <= ROWS; first++) {
        sf_status expected = first < ROWS ? SF_OK : SF_LENGTH;
        CHECK(sf_window_i8(&recipe, rows, VALUES, first, work, SMOLFED_WORK, small,
                           SMOLFED_FEATURES) == expected);
        CHECK(sf_window_i16(&recipe, rows, VALUES, first, work, SMOLFED_WORK, wide,
                            SMOLFED_FEATURES) == expected);
        CHECK(sf_window_f32(&recipe, rows, VALUES, first, work, SMOLFED_WORK, floats,
                            SMOLFED_FEATURES) == expected);
    }
    free(floats);
    free(wide);
    free(small);
    free(work);
    free(rows);
}

// Gradients of 8 × 8 pixels in cells of 4 × 4.
static void check_images(void) {
    enum { PIXELS = 64, COUNT = 32 };
    static const uint8_t encoded[] = {1, 1, 8, 0, 8, 0, 4, 0};
    const sf_recipe recipe = {encoded, sizeof encoded, NULL, NULL, 1, PLACES, false};
    uint8_t *pixels = take(PIXELS);
    uint32_t *sums = take(COUNT * sizeof *sums);
    int8_t *small = take(COUNT * sizeof *small);
    int16_t *wide = take(COUNT * sizeof *wide);
    float *floats = take(COUNT * sizeof *floats);
    for (int at = 0; at < PIXELS; at++) {
        pixels[at] = (uint8_t)(at * at * 7);
    }
    CHECK(sf_image_f32(&recipe, pixels, PIXELS, floats, COUNT) == SF_OK);
    CHECK(sf_image_i8(&recipe, pixels, PIXELS, sums, COUNT, small, COUNT) == SF_OK);
    CHECK(sf_image_i16(&recipe, pixels, PIXELS, sums, COUNT, wide, COUNT) == SF_OK);
    CHECK(sf_image_f32(&recipe, pixels, PIXELS - 1, floats, COUNT) == SF_LENGTH);
    free(floats);
    free(wide);
    free(small);
    free(sums);
    free(pixels);
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    const model models[] = {
        {"sf_softmax_f32", &sf_softmax_f32, F32, false, CLASSES},
        {"sf_softmax_i8", &sf_softmax_i8, I8, false, CLASSES},
        {"sf_softmax_i16", &sf_softmax_i16, I16, false, CLASSES},
        {"sf_logistic_f32", &sf_logistic_f32, F32, false, 1},
        {"sf_logistic_i8", &sf_logistic_i8, I8, false, 1},
        {"sf_logistic_i16", &sf_logistic_i16, I16, false, 1},
        {"sf_linear_f32", &sf_linear_f32, F32, true, 1},
        {"sf_linear_i8", &sf_linear_i8, I8, true, 1},
        {"sf_linear_i16", &sf_linear_i16, I16, true, 1},
    };
    CHECK(strlen(sf_version()) > 0 && strlen(sf_strerror(SF_BUSY)) > 0);
    check_windows();
    check_images();
    for (size_t at = 0; at < sizeof models / sizeof *models; at++) {
        run(arguments[1], &models[at]);
    }
    infer(arguments[1]);
    puts("every function ran with every kind of model");
    return 0;
}
