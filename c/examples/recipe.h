// The features of "experiment": `smolfed data recipe experiment.toml --c` prints this file.
// docs/c.md shows its use.
#ifndef SMOLFED_RECIPE_H
#define SMOLFED_RECIPE_H

#include "smolfed.h"

#define SMOLFED_KIND sf_softmax_i8 // the model and its arithmetic
#define SMOLFED_INFER_KIND sf_infer_softmax_i8 // the same for a device that only infers
#define SMOLFED_FEATURES 18 // of a sample
#define SMOLFED_CLASSES 4 // 0, 1, 2, 3
#define SMOLFED_PLACES 6 // binary places of a feature
#define SMOLFED_CHANNELS 3 // x, y, z
#define SMOLFED_LENGTH 64 // rows of a window
#define SMOLFED_STEP 32 // rows from one window to the next
#define SMOLFED_WORK 64 // words of working memory

// As docs/protocol.md encodes it.
static const uint8_t smolfed_recipe_bytes[18] = {
    4,
    1,
    3,
    0,
    64,
    0,
    3,
    5,
    1,
    0,
    3,
    0,
    6,
    0,
    12,
    0,
    33,
    0,
};

// (feature - offset) * multiplier / 2^shift.
static const sf_scale smolfed_scales[18] = {
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
    {0, 1, 4},
};

static const sf_recipe smolfed_recipe = {
    smolfed_recipe_bytes, sizeof smolfed_recipe_bytes, smolfed_scales, NULL, 1, SMOLFED_PLACES, true,
};

#endif
