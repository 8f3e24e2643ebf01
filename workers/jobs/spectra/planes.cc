#include "workers/jobs/spectra/planes.h"

#include <algorithm>
#include <cstring>

namespace patchbay::workers {

SpectraPlanes::SpectraPlanes(const SpectraGrid& grid)
    : grid_(grid), planes_(static_cast<std::size_t>(plan::SpectralChannels(grid.options))) {}

void SpectraPlanes::Hold(const Box& box) {
  left_ = box.x;
  width_ = box.width;
  top_ = bottom_ = box.y;
  MoveTo(box.y, box.y + box.height);
}

void SpectraPlanes::MoveTo(std::int64_t top, std::int64_t bottom) {
  const std::int64_t kept = std::clamp<std::int64_t>(bottom_ - top, 0, bottom_ - top_);
  const auto bytes = static_cast<std::size_t>((bottom - top) * width_);
  for (std::vector<std::uint8_t>& plane : planes_) {
    if (plane.size() < bytes) plane.resize(bytes);
    if (kept > 0 && top > top_) {
      std::memmove(plane.data(), plane.data() + (top - top_) * width_,
                   static_cast<std::size_t>(kept * width_));
    }
  }
  top_ = top;
  bottom_ = bottom;
}

std::uint8_t* SpectraPlanes::At(int channel, std::int64_t y, std::int64_t x) {
  return planes_[static_cast<std::size_t>(channel)].data() + (y - top_) * width_ + (x - left_);
}

void SpectraPlanes::Copy(SpectraPlanes& from) {
  for (int channel = 0; channel < static_cast<int>(planes_.size()); ++channel) {
    for (std::int64_t y = from.top_; y < from.bottom_; ++y) {
      std::memcpy(At(channel, y, from.left_), from.At(channel, y, from.left_),
                  static_cast<std::size_t>(from.width_));
    }
  }
}

ops::SpectralPlane SpectraPlanes::View(int channel) {
  ops::SpectralPlane plane;
  plane.pixels = planes_[static_cast<std::size_t>(channel)].data();
  plane.row_bytes = width_;
  plane.top = top_;
  plane.left = left_;
  plane.height = bottom_ - top_;
  plane.width = width_;
  plane.image_height = grid_.height;
  plane.image_width = grid_.width;
  return plane;
}

}  // namespace patchbay::workers
