#include "runtime/client/stream_digest.h"

#include <span>

namespace patchbay::client {

StatusOr<std::vector<Digest>> PatchDigests(const Batch& batch) {
  if (batch.on_device()) return Unimplemented("digest batch: it lies on a device");
  const std::vector<BatchArray> arrays = batch.arrays();
  std::vector<std::uint32_t> real;
  for (std::uint32_t i = 0; i < batch.count(); ++i) {
    if (!batch.IsPadding(i)) real.push_back(i);
  }
  std::vector<std::size_t> next(real.size(), 0);  // array of each patch
  const auto next_bytes = [&](std::size_t patch) -> StatusOr<std::span<const std::byte>> {
    if (next[patch] == arrays.size()) return std::span<const std::byte>();
    const TensorView& tensor = arrays[next[patch]++].tensor;
    const auto bytes = static_cast<std::size_t>(tensor.stride_bytes[0]);
    return std::span<const std::byte>(tensor.data + real[patch] * bytes, bytes);
  };
  return Sha256OfEach(real.size(), next_bytes);
}

Status StreamDigest::Add(const Batch& batch) {
  PB_ASSIGN_OR_RETURN(const std::vector<Digest> patches, PatchDigests(batch));
  for (const Digest& patch : patches) digest_.Update(std::as_bytes(std::span(patch.bytes)));
  return absl::OkStatus();
}

}  // namespace patchbay::client
