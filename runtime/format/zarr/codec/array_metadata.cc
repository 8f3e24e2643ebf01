#include "runtime/format/zarr/codec/array_metadata.h"

#include "runtime/core/strings.h"

namespace patchbay::zarr {

std::int64_t ArrayMetadata::ChunkElements() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : chunk_shape) n *= extent;
  return n;
}

std::int64_t ArrayMetadata::ChunkBytes() const {
  return ChunkElements() * static_cast<std::int64_t>(SizeOf(dtype));
}

std::int64_t ArrayMetadata::ChunksPerShard() const {
  std::int64_t n = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) n *= shard_shape[i] / chunk_shape[i];
  return n;
}

std::int64_t ArrayMetadata::ShardGrid(int axis) const {
  const auto i = static_cast<std::size_t>(axis);
  return (shape[i] + shard_shape[i] - 1) / shard_shape[i];
}

std::int64_t ArrayMetadata::ChunkGrid(int axis) const {
  const auto i = static_cast<std::size_t>(axis);
  return (shape[i] + chunk_shape[i] - 1) / chunk_shape[i];
}

std::string ArrayMetadata::ShardKey(const std::int64_t* shard_index) const {
  std::string key = key_style == KeyStyle::kDefault ? "c" : "";
  if (shape.empty()) return key.empty() ? "0" : key;
  for (int i = 0; i < rank(); ++i) {
    if (!key.empty()) key.push_back(separator);
    key.append(std::to_string(shard_index[i]));
  }
  return key;
}

}  // namespace patchbay::zarr
