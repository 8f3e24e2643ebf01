// The scratch of a pass: one block of memory that is handed out in pieces. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace patchbay::ops {

inline std::int64_t RoundedUp(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// Hands out pieces of one block of memory, which is made to fit before the first is used.
class Arena {
 public:
  explicit Arena(std::vector<std::byte>& memory) : memory_(memory) {}
  std::size_t Take(std::int64_t bytes) {
    const std::size_t at = size_;
    size_ += static_cast<std::size_t>(RoundedUp(bytes, 64));
    return at;
  }
  void Fit() {
    if (memory_.size() < size_ + 64) memory_.resize(size_ + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    base_ = memory_.data() + (64 - address % 64) % 64;
  }
  float* Floats(std::size_t at) const { return reinterpret_cast<float*>(base_ + at); }
  std::byte* Bytes(std::size_t at) const { return base_ + at; }

 private:
  std::vector<std::byte>& memory_;
  std::size_t size_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace patchbay::ops
