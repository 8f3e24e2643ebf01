// How long a trainer waited for its batches, and how many it got.
#pragma once

#include <cstdint>
#include <mutex>

#include "runtime/client/stream.h"

namespace patchbay::client {

/// Wall time begins with the first wait and ends with Stop (or is still running). Thread-safe.
class StreamTimer {
 public:
  void BeginWait();
  void EndWait(bool got_batch);
  void Count(std::uint64_t patches, std::uint64_t size_bytes);
  void Stop();
  /// The fields this class knows: batches, patches, bytes, times and the stall fraction.
  StreamStats stats() const;

 private:
  mutable std::mutex mu_;
  StreamStats counts_;         ///< guarded by mu_, as are all below
  std::int64_t begun_ns_ = 0;  ///< first BeginWait; 0 = not yet
  std::int64_t wait_begun_ns_ = 0;
  std::int64_t first_got_ns_ = 0;  ///< when the first batch was there
  std::int64_t stopped_ns_ = 0;
  std::int64_t waited_ns_ = 0;
  std::int64_t waited_later_ns_ = 0;  ///< from the second batch on
};

}  // namespace patchbay::client
