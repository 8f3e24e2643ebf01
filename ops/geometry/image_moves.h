// The geometry of the patches of images: ops compose their draws into one map, of whole pixels or
// between them. Bits do not depend on the width of the processor's registers.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "ops/geometry/patch_maps.h"
#include "runtime/core/extent.h"
#include "runtime/core/random.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/op_options.h"

namespace patchbay::ops {

/// A linear map of places between pixels: y = yy i + yx j + y0, x = xy i + xx j + x0.
struct PlaceMap {
  double yy = 1, yx = 0, y0 = 0;
  double xy = 0, xx = 1, x0 = 0;

  /// This map applied to the output of `inner`.
  PlaceMap After(const PlaceMap& inner) const;
  bool IsIdentity() const;
};

/// Pixels beyond the box that was read: the box mirrored about its outer pixels, mirrored about its
/// edges, or its outer pixels.
enum class Border : std::uint8_t { kReflect101, kReflect, kEdge };

/// "border", of ops that sample between pixels.
template <typename Options>
plan::Option<Options> BorderOption() {
  return plan::OptionOf(
      &Options::border,
      {.name = "border",
       .choices = {"reflect101", "reflect", "edge"},
       .help = "beyond the box that is read (the patch and crop.margin): mirrored about its "
               "outer pixels, about its edges, or its outer pixels repeated; 2-D images only"});
}
/// Refuses a border of a volume other than the default.
Status CheckVolumeBorder(Border border);

/// The geometry of one patch in the making. Each op adds its map from the pixels that it makes to
/// those that it takes.
class ImageComposition {
 public:
  ImageComposition(std::int64_t rows, std::int64_t columns) : height(rows), width(columns) {}

  /// Size of the image that the next op takes; an op that cuts it changes them.
  std::int64_t height, width;
  PixelField field;  ///< applied before everything else

  /// `source(PixelPlace)` takes whole pixels by turns, mirrors and shifts.
  template <typename Source>
  void Move(const Source& source) {
    const PixelPlace origin = At(source({0, 0})), down = At(source({1, 0})),
                     right = At(source({0, 1}));
    sy_ = origin.y, yi_ = down.y - origin.y, yj_ = right.y - origin.y;
    sx_ = origin.x, xi_ = down.x - origin.x, xj_ = right.x - origin.x;
  }
  /// A map between pixels; all of them are applied before the moves of whole pixels.
  void Map(const PlaceMap& map) { between_ = between_.After(map); }

 private:
  friend class ImageMoves;

  PixelPlace At(PixelPlace p) const {
    return {sy_ + yi_ * p.y + yj_ * p.x, sx_ + xi_ * p.y + xj_ * p.x};
  }
  WindowMap Window() const;
  PlaceMap Places() const;

  // The moves so far, as y = sy + yi * i + yj * j and likewise x. Coefficients are -1, 0 or 1.
  std::int64_t sy_ = 0, yi_ = 1, yj_ = 0;
  std::int64_t sx_ = 0, xi_ = 0, xj_ = 1;
  PlaceMap between_;
};

/// Every op of a chain that moves pixels. Immutable once all are added.
class ImageMoves {
 public:
  /// Composes the draws of one op, whose own key it gets.
  using Move = std::function<void(const DrawKey& key, ImageComposition& composition)>;

  explicit ImageMoves(const Extent& patch) : patch_(patch) {}

  void Add(std::uint32_t occurrence, Move move) {
    moves_.emplace_back(occurrence, std::move(move));
  }
  /// The box that is read reaches that much farther on each side.
  void AddMargin(std::int64_t y, std::int64_t x) { margin_y_ += y, margin_x_ += x; }
  /// Some patch may be sampled between pixels.
  void SampleBetween(Border border) { samples_between_ = true, border_ = border; }

  std::int64_t margin_y() const { return margin_y_; }
  std::int64_t margin_x() const { return margin_x_; }
  bool samples_between() const { return samples_between_; }

  /// A pure function of the key.
  PatchGeometry Draw(const DrawKey& key) const;

 private:
  Extent patch_;
  std::int64_t margin_y_ = 0, margin_x_ = 0;
  bool samples_between_ = false;
  Border border_ = Border::kReflect101;
  std::vector<std::pair<std::uint32_t, Move>> moves_;  ///< by plan::Occurrence of their ops
};

/// Pixels between the control points of a field along a side of the patch.
inline double FieldSpacing(int points, std::int64_t side) {
  return static_cast<double>(side - 1) / (points - 3);
}

}  // namespace patchbay::ops
