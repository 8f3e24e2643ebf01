// JPEG tiles that need nothing beside them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/tiles/tile_format.h"

namespace patchbay::tiles {

/// Puts the tables that a slide's tiles share into each of them, and an Adobe marker that states
/// the colour space: any JPEG decoder reads them, to the same samples. A tile grows by the tables.
class SelfContainedJpeg {
 public:
  /// DataLoss for tables that are no abbreviated stream.
  static StatusOr<SelfContainedJpeg> Make(const TileFormat& format, int components);

  /// Appends the tile to `out`. JFIF and Adobe markers of its own, which may contradict the slide's
  /// word on the colour space, are left out. DataLoss when it is no JPEG image.
  Status Append(std::span<const std::byte> tile, std::vector<std::byte>& out) const;

 private:
  explicit SelfContainedJpeg(std::string head) : head_(std::move(head)) {}

  std::string head_;  ///< first marker, Adobe marker, tables
};

}  // namespace patchbay::tiles
