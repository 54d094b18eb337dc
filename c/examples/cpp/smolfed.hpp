// A device for C++17: it closes itself, and arrays carry their lengths. It throws nothing, allocates
// nothing, needs no library, and compiles to the calls of smolfed.h.
#ifndef SMOLFED_HPP
#define SMOLFED_HPP

#include "smolfed.h"

namespace smolfed {

// Bytes that the device keeps until its next call.
struct Bytes {
    const uint8_t *data = nullptr;
    size_t count = 0;
};

// Memory of a device. sf_memory_bytes says how much it needs.
template <size_t Count> struct Memory {
    alignas(8) uint8_t bytes[Count];
};

// The features of a window, whose oldest row is `first`. Their type chooses the function.
template <size_t Rows, size_t Channels, size_t Work, size_t Count>
[[nodiscard]] sf_status window(const sf_recipe &recipe, const int16_t (&rows)[Rows][Channels],
                               size_t first, uint32_t (&work)[Work], int8_t (&features)[Count]) {
    return sf_window_i8(&recipe, rows[0], Rows * Channels, first, work, Work, features, Count);
}
template <size_t Rows, size_t Channels, size_t Work, size_t Count>
[[nodiscard]] sf_status window(const sf_recipe &recipe, const int16_t (&rows)[Rows][Channels],
                               size_t first, uint32_t (&work)[Work], int16_t (&features)[Count]) {
    return sf_window_i16(&recipe, rows[0], Rows * Channels, first, work, Work, features, Count);
}
template <size_t Rows, size_t Channels, size_t Work, size_t Count>
[[nodiscard]] sf_status window(const sf_recipe &recipe, const int16_t (&rows)[Rows][Channels],
                               size_t first, uint32_t (&work)[Work], float (&features)[Count]) {
    return sf_window_f32(&recipe, rows[0], Rows * Channels, first, work, Work, features, Count);
}

// An open device, or none. The memory must outlive it.
class Device {
public:
    Device() = default;
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    Device(Device &&other) noexcept : device_(other.device_) { other.device_ = nullptr; }
    Device &operator=(Device &&other) noexcept {
        if (this != &other) {
            close();
            device_ = other.device_;
            other.device_ = nullptr;
        }
        return *this;
    }
    ~Device() { close(); }

    // A device that is open already is closed before.
    template <size_t Count>
    [[nodiscard]] sf_status open(Memory<Count> &memory, const sf_config &config) {
        const sf_status closed = close();
        return closed != SF_OK ? closed : sf_open(memory.bytes, Count, &config, &device_);
    }

    // The memory is the caller's again. Without an open device it does nothing. During another call
    // it answers SF_BUSY, and the device stays open.
    sf_status close() {
        const sf_status closed = device_ != nullptr ? sf_close(device_) : SF_OK;
        if (closed == SF_OK) {
            device_ = nullptr;
        }
        return closed;
    }

    explicit operator bool() const { return device_ != nullptr; }

    // The handle, for functions of smolfed.h that are not here.
    sf_device *get() const { return device_; }

    // The line.
    [[nodiscard]] sf_status outgoing(Bytes &bytes) {
        return sf_outgoing(device_, &bytes.data, &bytes.count);
    }
    [[nodiscard]] sf_status sent() { return sf_sent(device_); }
    [[nodiscard]] sf_status receive(Bytes bytes, size_t &taken) {
        return sf_receive(device_, bytes.data, bytes.count, &taken);
    }
    [[nodiscard]] sf_status timeout() { return sf_timeout(device_); }

    // Rounds.
    [[nodiscard]] sf_status phase(sf_phase &phase) const { return sf_phase_of(device_, &phase); }
    [[nodiscard]] sf_status train_some(uint32_t most, bool &has_more) {
        return sf_train_some(device_, most, &has_more);
    }
    [[nodiscard]] sf_status participations(uint32_t &count) const {
        return sf_participations(device_, &count);
    }
    [[nodiscard]] sf_status participations_left(uint32_t &count) const {
        return sf_participations_left(device_, &count);
    }
    [[nodiscard]] sf_status last_round(sf_round &round) const {
        return sf_last_round(device_, &round);
    }

    // Samples: the type of the features chooses the function, and their number is checked.
    template <size_t Count>
    [[nodiscard]] sf_status add(const float (&features)[Count], uint16_t target) {
        return sf_add_sample_f32(device_, features, Count, target);
    }
    template <size_t Count>
    [[nodiscard]] sf_status add(const int8_t (&features)[Count], uint16_t target) {
        return sf_add_sample_i8(device_, features, Count, target);
    }
    template <size_t Count>
    [[nodiscard]] sf_status add(const int16_t (&features)[Count], uint16_t target) {
        return sf_add_sample_i16(device_, features, Count, target);
    }
    [[nodiscard]] sf_status add_record(Bytes record) {
        return sf_add_record(device_, record.data, record.count);
    }
    [[nodiscard]] sf_status count_samples(sf_sample_counts &counts) const {
        return sf_count_samples(device_, &counts);
    }
    [[nodiscard]] sf_status forget_samples() { return sf_forget_samples(device_); }

    // The model.
    [[nodiscard]] sf_status model_round(uint32_t &round) const {
        return sf_model_round(device_, &round);
    }
    template <size_t Count, size_t Scores>
    [[nodiscard]] sf_status predict(const float (&features)[Count], float (&scores)[Scores],
                                    uint16_t &found) const {
        return sf_predict_f32(device_, features, Count, scores, Scores, &found);
    }
    template <size_t Count, size_t Scores>
    [[nodiscard]] sf_status predict(const int8_t (&features)[Count], int32_t (&scores)[Scores],
                                    uint16_t &found) const {
        return sf_predict_i8(device_, features, Count, scores, Scores, &found);
    }
    template <size_t Count, size_t Scores>
    [[nodiscard]] sf_status predict(const int16_t (&features)[Count], int32_t (&scores)[Scores],
                                    uint16_t &found) const {
        return sf_predict_i16(device_, features, Count, scores, Scores, &found);
    }
    template <size_t Scores> [[nodiscard]] sf_status probabilities(float (&scores)[Scores]) const {
        return sf_probabilities_f32(device_, scores, Scores);
    }
    template <size_t Scores>
    [[nodiscard]] sf_status probabilities(int32_t (&scores)[Scores]) const {
        return sf_probabilities_i32(device_, scores, Scores);
    }

private:
    sf_device *device_ = nullptr;
};

} // namespace smolfed

#endif
