#include "workers/sources/volumes/class_voxels.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "workers/sources/volumes/raw_voxels.h"

namespace patchbay::workers {
namespace {

/// The most voxels that are looked at of a volume that is all background so far.
constexpr std::int64_t kMostVoxels = std::int64_t{1} << 27;

}  // namespace

bool ClassValues::Add(double value) {
  if (is_image_ || !(value >= 0 && value <= 255) || value != std::floor(value)) {
    is_image_ = true;
    return false;
  }
  const auto at = static_cast<std::size_t>(value);
  if (seen_[at]) return true;
  seen_[at] = true;
  largest_ = std::max(largest_, at);
  is_image_ = ++count_ > kMost;
  return !is_image_;
}

std::string ClassValues::ToString() const {
  if (is_image_ || count_ == 0) return "";
  return StrCat("no more than ", Counted(count_, "value"), ", whole and up to ", largest_);
}

StatusOr<std::string> ClassesIn(const Folders& allowed, VolumeFormat format,
                                const std::string& path, const VolumeProgress& progress) {
  const auto header = ReadVolumeHeader(allowed, format, path, GeometryPolicy::kAccept);
  if (!header.ok()) return std::string();
  ClassValues values;
  Status stopped;
  std::int64_t left = kMostVoxels;
  const auto slice = [&](std::span<const float> voxels) {
    if (progress) stopped = progress();
    for (const float voxel : voxels) {
      if (!values.Add(static_cast<double>(voxel))) return false;
    }
    left -= static_cast<std::int64_t>(voxels.size());
    return stopped.ok() && left > 0;
  };
  const Status read = ForEachSlice(allowed, path, header->raw, slice);
  PB_RETURN_IF_ERROR(stopped);
  return read.ok() ? values.ToString() : std::string();
}

}  // namespace patchbay::workers
