// One digest over everything that a stream delivered.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/client/stream.h"
#include "runtime/core/hash.h"
#include "runtime/core/status.h"

namespace patchbay::client {

/// The SHA-256 of each patch's arrays in the layout's order, padding left out. Host memory only:
/// Unimplemented for a batch on a device.
StatusOr<std::vector<Digest>> PatchDigests(const Batch& batch);

/// The SHA-256 of the digests of a stream's patches in order: the same for any batch size, and for
/// several ranks whose patches are put together in order.
class StreamDigest {
 public:
  Status Add(const Batch& batch);
  /// Starts afresh.
  Digest Finish() { return digest_.Finish(); }

 private:
  Sha256 digest_;
};

}  // namespace patchbay::client
