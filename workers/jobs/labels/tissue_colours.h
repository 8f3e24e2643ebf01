// The colours of a slide's tissue, counted while its label set is written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/stain_normalize/stain_histogram.h"
#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/os/folders.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// Reads the chunks of level 0 that hold pixels of the class `tissue`, and no others.
class TissueColours {
 public:
  /// Null for classes without `tissue`, and for images that are not RGB of 8 bits.
  static StatusOr<std::unique_ptr<TissueColours>> Open(const Folders& allowed,
                                                       const std::string& store,
                                                       const plan::ClassTable& classes);

  /// Counts a row of chunks of `side` pixels.
  Status AddRow(std::int64_t row, std::int64_t side, const std::vector<zarr::LabelCell>& chunks);
  ops::StainHistogram Take() { return colours_.Take(); }

 private:
  TissueColours(std::unique_ptr<ImageSource> image, std::uint8_t value);
  Status AddChunk(const Box& box, std::int64_t side, const zarr::LabelCell& chunk);

  const std::unique_ptr<ImageSource> image_;
  const std::uint8_t value_;
  const std::unique_ptr<DecodeScratch> scratch_;
  EncodedPatch encoded_;
  std::vector<std::byte> pixels_;
  ops::StainCounter colours_;
};

}  // namespace patchbay::workers
