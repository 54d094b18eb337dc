//! The kernels of a network in 8 bits in C: `smolfed_core::quantised` line by line.

/// Needed by every network.
pub(super) const FUNCTIONS: &str = "
/* A bias, and a multiplier mantissa * 2^-31 * 2^-shift. */
typedef struct {
    int32_t bias;
    int32_t mantissa;
    int8_t shift;
} smolfed_output;

/* A sum times the multiplier, as MultiplyByQuantizedMultiplier of TensorFlow Lite has it. */
static inline int32_t smolfed_scaled(int32_t sum, const smolfed_output *output)
{
    const int shift = output->shift;
    int64_t wide = sum;
    if (shift < 0) {
        wide *= INT64_C(1) << -shift;
        wide = wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : wide;
    }
    const int64_t product = wide * output->mantissa;
    const int64_t half = INT64_C(1) << 30;
    const int64_t high = (product + (product < 0 ? 1 - half : half)) / (INT64_C(1) << 31);
    if (shift <= 0) {
        return (int32_t)high;
    }
    const int64_t magnitude = ((high < 0 ? -high : high) + (INT64_C(1) << (shift - 1))) >> shift;
    return (int32_t)(high < 0 ? -magnitude : magnitude);
}

/* An integer of the next layer. */
static inline int8_t smolfed_activation(int32_t sum, const smolfed_output *output, int zero,
                                        int least)
{
    const int64_t value = (int64_t)smolfed_scaled(sum + output->bias, output) + zero;
    return (int8_t)(value < least ? least : value > 127 ? 127 : value);
}

static inline int32_t smolfed_dot(const int8_t *weights, const int8_t *values, size_t count,
                                  int zero)
{
    int32_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (int32_t)weights[i] * (values[i] - zero);
    }
    return sum;
}
";

/// Convolutions.
pub(super) const CONVOLVE: &str = "
/* Sizes of a convolution, of the windows of which the largest value remains, and zero points. Pairs
   are height, width. */
typedef struct {
    size_t image[2];
    size_t inputs;
    size_t result[2];
    size_t outputs;
    size_t kernel[2];
    size_t stride[2];
    size_t padding[2];
    size_t pool[2];
    size_t pool_stride[2];
    int input_zero;
    int output_zero;
    int least;
} smolfed_convolution;

/* The products of a kernel with the values under it. Zeros beside the image add nothing. */
static inline int32_t smolfed_sum(const smolfed_convolution *c, const int8_t *kernel,
                                  const int8_t *values, size_t y, size_t x)
{
    const size_t top = y * c->stride[0];
    const size_t left = x * c->stride[1];
    int32_t sum = 0;
    for (size_t row = 0; row < c->kernel[0]; row++) {
        for (size_t column = 0; column < c->kernel[1]; column++) {
            /* Wraps above and left of the image. */
            const size_t at = top + row - c->padding[0];
            const size_t from = left + column - c->padding[1];
            if (at < c->image[0] && from < c->image[1]) {
                sum += smolfed_dot(kernel + (row * c->kernel[1] + column) * c->inputs,
                                   values + (at * c->image[1] + from) * c->inputs, c->inputs,
                                   c->input_zero);
            }
        }
    }
    return sum;
}

static inline void smolfed_convolve(const smolfed_convolution *c, const int8_t *weights,
                                    const smolfed_output *outputs, const int8_t *values,
                                    int8_t *results)
{
    const size_t patch = c->kernel[0] * c->kernel[1] * c->inputs;
    for (size_t y = 0; y < c->result[0]; y++) {
        for (size_t x = 0; x < c->result[1]; x++) {
            for (size_t k = 0; k < c->outputs; k++) {
                int32_t largest = INT32_MIN;
                for (size_t i = 0; i < c->pool[0] * c->pool[1]; i++) {
                    const int32_t sum = smolfed_sum(
                        c, weights + k * patch, values,
                        y * c->pool_stride[0] + i / c->pool[1],
                        x * c->pool_stride[1] + i % c->pool[1]);
                    largest = sum > largest ? sum : largest;
                }
                *results++ = smolfed_activation(largest, outputs + k, c->output_zero, c->least);
            }
        }
    }
}
";

/// Dense layers.
pub(super) const DENSE: &str = "
static inline void smolfed_dense(const int8_t *weights, const smolfed_output *outputs,
                                 const int8_t *values, size_t inputs, size_t count,
                                 int input_zero, int output_zero, int least, int8_t *results)
{
    for (size_t k = 0; k < count; k++) {
        const int32_t sum = smolfed_dot(weights + k * inputs, values, inputs, input_zero);
        results[k] = smolfed_activation(sum, outputs + k, output_zero, least);
    }
}
";

/// The largest value of each window.
pub(super) const MAX_POOL: &str = "
static inline void smolfed_max_pool(const int8_t *values, size_t width, size_t channels,
                                    size_t rows, size_t columns, size_t height, size_t length,
                                    size_t down, size_t right, int8_t *results)
{
    for (size_t y = 0; y < rows; y++) {
        for (size_t x = 0; x < columns; x++) {
            for (size_t k = 0; k < channels; k++) {
                int8_t largest = INT8_MIN;
                for (size_t i = 0; i < height * length; i++) {
                    const size_t pixel = (y * down + i / length) * width + x * right + i % length;
                    const int8_t value = values[pixel * channels + k];
                    largest = value > largest ? value : largest;
                }
                *results++ = largest;
            }
        }
    }
}
";

/// The mean of each channel.
pub(super) const AVERAGE: &str = "
static inline void smolfed_average(const int8_t *values, size_t count, size_t channels,
                                   const smolfed_output *output, int input_zero, int output_zero,
                                   int least, int8_t *results)
{
    for (size_t k = 0; k < channels; k++) {
        int32_t sum = 0;
        for (size_t i = k; i < count; i += channels) {
            sum += values[i] - input_zero;
        }
        results[k] = smolfed_activation(sum, output, output_zero, least);
    }
}
";
