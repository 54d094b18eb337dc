//! The C functions that predict in integers, with the bits of `smolfed_core::fixed_point`.

use std::fmt::Write;

use smolfed_core::fixed_point::{FeatureFormat, SCORE_FRACTION, WEIGHT_FRACTION};

use super::literal::double;
use crate::inference::error::InferenceError;
use crate::inference::integers::IntegerModel;
use crate::inference::model::Outputs;

/// The model-specific parts of a header.
pub(super) struct Functions {
    /// The type of features.
    pub(super) types: String,
    /// Weights, followed by one bias per output.
    pub(super) weights: Vec<i32>,
    pub(super) outputs: usize,
    /// The functions that use them.
    pub(super) body: String,
}

/// Returns the model's parts in C.
///
/// # Errors
/// As [`IntegerModel::weights`].
pub(super) fn functions(model: &IntegerModel<'_>) -> Result<Functions, InferenceError> {
    let task = model.model().task();
    let format = model.format();
    let scores = SCORES.replace("BLOCK", block(format));
    let prediction = match model.model().outputs() {
        Outputs::Value(scale) => VALUE
            .replace("STD", &double(scale.std()))
            .replace("MEAN", &double(scale.mean())),
        Outputs::Logit(_) => format!("{}{CLASSES}{LOGIT}", exponential()),
        Outputs::Logits(_) => classes(),
        Outputs::Representation => return Err(InferenceError::Arithmetic),
    };
    Ok(Functions {
        types: types(format, task.feature_count()),
        weights: model.weights()?,
        outputs: task.output_count(),
        body: scores + &prediction,
    })
}

/// Returns the function that predicts a class from a score for each class.
pub(super) fn classes() -> String {
    format!("{}{CLASSES}{LOGITS}", exponential())
}

/// Returns the type of features, and the places of the sums.
fn types(format: FeatureFormat, count: usize) -> String {
    let (name, most) = match format.is_wide() {
        false => ("int8_t", 127),
        true => ("int16_t", 32_767),
    };
    let fraction = format.scale().fraction();
    format!(
        "/* The model reads SMOLFED_READ integers, each a feature times 2^SMOLFED_PLACES. */\n\
         #define SMOLFED_READ {count}\n#define SMOLFED_PLACES {fraction}\n\
         #define SMOLFED_LARGEST {most}\n\
         #define SMOLFED_SHIFT {}\ntypedef {name} smolfed_feature;\n",
        WEIGHT_FRACTION + fraction - SCORE_FRACTION
    )
}

/// Returns code for sums of at most eight products, exact in 32 bits: weights are below 2^21.
const fn block(format: FeatureFormat) -> &'static str {
    match format.is_wide() {
        false => {
            "            int32_t part = 0;
            for (; i < end; i++) {
                part += row[i] * features[i];
            }
            sum += part;
"
        }
        // In two halves of 32 bits, as a weight is 1024 high + low.
        true => {
            "            int32_t high = 0;
            int32_t low = 0;
            for (; i < end; i++) {
                const int32_t rest = row[i] & 1023;
                high += (row[i] - rest) / 1024 * features[i];
                low += rest * features[i];
            }
            sum += (int64_t)high * 1024 + low;
"
        }
    }
}

/// Replaces the functions that read a row.
pub(super) const NOT_COMPUTED: &str = "
/* The features are not computed here, but from a row as smolfed_core::features does it in integers:
   docs/features.md. */

";

/// Returns the rounding of the numbers from `smolfed_prepare` or `smolfed_read`.
pub(super) fn rounding(is_whole: bool) -> String {
    let (before, number) = match is_whole {
        true => (
            "    float read[SMOLFED_READ];\n    smolfed_read(features, read);\n",
            "read[i]",
        ),
        false => ("", "smolfed_prepare(features, i)"),
    };
    let mut text = String::new();
    let _ = write!(
        text,
        "\n/* The integer nearest to a number that the model reads. */\n\
         static inline smolfed_feature smolfed_round(float x)\n{{\n    \
         const double integer = ldexp((double)x, SMOLFED_PLACES);\n    \
         if (integer < 0.0) {{\n        \
         return (smolfed_feature)(integer > -SMOLFED_LARGEST - 1 ? integer - 0.5 \
         : -SMOLFED_LARGEST - 1);\n    }}\n    \
         return (smolfed_feature)(integer < SMOLFED_LARGEST ? integer + 0.5 : SMOLFED_LARGEST);\n\
         }}\n\n\
         /* Writes the SMOLFED_READ integers that the model reads of a row, which is \
         SMOLFED_FEATURES numbers\n   as in the data; NaN is a missing value. Firmware without \
         floating point writes them itself. */\n\
         static inline void smolfed_integers(const float *features, smolfed_feature *integers)\n\
         {{\n{before}    for (size_t i = 0; i < SMOLFED_READ; i++) {{\n        \
         integers[i] = smolfed_round({number});\n    }}\n}}\n"
    );
    text
}

const SCORES: &str = "
/* Writes SMOLFED_OUTPUTS scores of SMOLFED_READ features, in units of 2^-16. */
static inline void smolfed_scores(const smolfed_feature *features, int32_t *scores)
{
    for (size_t k = 0; k < SMOLFED_OUTPUTS; k++) {
        const int32_t *row = smolfed_weights + k * SMOLFED_READ;
        int64_t sum = (int64_t)smolfed_biases[k] * (INT32_C(1) << SMOLFED_PLACES);
        sum += INT32_C(1) << (SMOLFED_SHIFT - 1);
        for (size_t i = 0; i < SMOLFED_READ;) {
            const size_t end = SMOLFED_READ - i < 8 ? SMOLFED_READ : i + 8;
BLOCK        }
        /* Towards minus infinity. */
        sum = sum < 0 ? ~(~sum >> SMOLFED_SHIFT) : sum >> SMOLFED_SHIFT;
        scores[k] = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int32_t)sum;
    }
}
";

/// Returns e^-x by tables, as in `smolfed_core::fixed_point`.
fn exponential() -> String {
    let list = |numbers: &mut dyn Iterator<Item = f64>| {
        let numbers: Vec<String> = numbers.map(|x| x.round().to_string()).collect();
        let lines: Vec<String> = numbers.chunks(8).map(|line| line.join(", ")).collect();
        lines.join(",\n        ")
    };
    let whole = list(&mut (1..16).map(|k| 131_072.0 * libm::exp(-f64::from(k))));
    let part = list(&mut (0..32).map(|i| 65_536.0 * libm::exp(-f64::from(i) / 32.0)));
    EXPONENTIAL.replace("WHOLE", &whole).replace("PART", &part)
}

const EXPONENTIAL: &str = "
/* e^-x in units of 2^-16, of x in units of 2^-16. */
static inline uint32_t smolfed_exp_of_minus(uint32_t x)
{
    /* e^-k of k from 1, in units of 2^-17, and e^-(i/32). */
    static const uint16_t whole[15] = {
        WHOLE};
    static const uint32_t part[32] = {
        PART};
    const uint32_t rest = x & 0x7ff;
    const uint32_t missing = (rest << 4) - ((rest * rest) >> 13);
    const uint32_t k = x >> 16;
    uint32_t fine = part[x >> 11 & 31];
    fine -= (fine * missing + 0x80000) >> 20;
    if (k == 0) {
        return fine;
    }
    return k > 15 ? 0 : (fine * whole[k - 1] + 0x10000) >> 17;
}

/* e^(score - largest). */
static inline uint32_t smolfed_exp_below(int32_t score, int32_t largest)
{
    return smolfed_exp_of_minus((uint32_t)largest - (uint32_t)score);
}
";

const CLASSES: &str = "
/* The number of the predicted class of SMOLFED_READ features. Writes SMOLFED_CLASSES probabilities
   in units of 2^-16, so that 65536 is certain, unless `probabilities` is NULL. */
static inline int smolfed_predict(const smolfed_feature *features, int32_t *probabilities)
{
    int32_t scores[SMOLFED_OUTPUTS];
    smolfed_scores(features, scores);
";

const LOGIT: &str = "    if (probabilities != NULL) {
        const int32_t largest = scores[0] > 0 ? scores[0] : 0;
        const uint32_t own = smolfed_exp_below(scores[0], largest);
        const uint32_t sum = own + smolfed_exp_below(0, largest);
        probabilities[1] = (int32_t)((own * (UINT32_MAX / sum) + 0x8000) >> 16);
        probabilities[0] = 65536 - probabilities[1];
    }
    return scores[0] > 0;
}
";

const LOGITS: &str = "    int best = 0;
    for (int k = 1; k < SMOLFED_CLASSES; k++) {
        if (scores[k] > scores[best]) {
            best = k;
        }
    }
    if (probabilities != NULL) {
        uint32_t sum = 0;
        for (size_t k = 0; k < SMOLFED_CLASSES; k++) {
            const uint32_t share = smolfed_exp_below(scores[k], scores[best]);
            probabilities[k] = (int32_t)share;
            sum += share;
        }
        const uint32_t factor = UINT32_MAX / sum;
        for (size_t k = 0; k < SMOLFED_CLASSES; k++) {
            probabilities[k] = (int32_t)(((uint32_t)probabilities[k] * factor + 0x8000) >> 16);
        }
    }
    return best;
}
";

const VALUE: &str = "
/* The predicted value of SMOLFED_READ features, scaled as in training, in units of 2^-16. */
static inline int32_t smolfed_predict(const smolfed_feature *features)
{
    int32_t scores[SMOLFED_OUTPUTS];
    smolfed_scores(features, scores);
    return scores[0];
}

/* A predicted value in its own unit. */
static inline float smolfed_value(int32_t predicted)
{
    uint32_t units = predicted < 0 ? 0 - (uint32_t)predicted : (uint32_t)predicted;
    int surplus = 0;
    /* What a float does not hold is cut off. */
    while (units >> surplus >> 24 != 0) {
        surplus++;
    }
    const float value = (float)(units >> surplus << surplus) / 65536.0f;
    return (float)((predicted < 0 ? -(double)value : (double)value) * STD + MEAN);
}
";
