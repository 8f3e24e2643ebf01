// Page table entries made before they are needed: a ring's first round would otherwise take one
// fault for every page, while the trainer waits.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>
#include <thread>

namespace patchbay::memory {

/// Maps the pages of shared memory for writing: the first gigabyte before the constructor returns
/// (some 50 ms for a quarter of it), what is beyond on a thread of its own. Their content stays,
/// also when others write them meanwhile. Only a hint: kernels before 5.14 and machines without a
/// thread to spare map on first use, as ever. Stops when destroyed, which must be before the memory
/// is unmapped.
class Prefault {
 public:
  Prefault() = default;
  explicit Prefault(std::span<std::byte> bytes);

 private:
  std::jthread thread_;
};

}  // namespace patchbay::memory
