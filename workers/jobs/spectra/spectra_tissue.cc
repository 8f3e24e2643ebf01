#include <algorithm>
#include <charconv>

#include "ops/tissue/tissue_coverage.h"
#include "runtime/core/strings.h"
#include "workers/jobs/spectra/spectra_image.h"
#include "workers/jobs/task/tissue_picture.h"

namespace patchbay::workers {

Json TissueDefinition() {
  Json json = ops::ToJson(ops::TissueMaskOptions{});
  json["downsample"] = kTissueDownsample;
  json["min_fraction"] = kTissueFraction;
  return json;
}

StatusOr<ops::TissueMask> TissueMaskOf(TaskContext& context, const ImageSource& image) {
  PB_ASSIGN_OR_RETURN(const TissuePicture picture, TissuePictureOf(context, image));
  return ops::MakeTissueMask(picture.View(), std::nullopt, {});
}

std::string EncodeTissueMask(const ops::TissueMask& mask) {
  std::string bytes = StrCat(mask.height, " ", mask.width, "\n");
  for (std::size_t i = 0; i < mask.pixels.size(); i += 8) {
    unsigned byte = 0;
    for (std::size_t j = i; j < std::min(i + 8, mask.pixels.size()); ++j) {
      byte |= (mask.pixels[j] != 0 ? 1u : 0u) << (j - i);
    }
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

StatusOr<ops::TissueMask> DecodeTissueMask(std::string_view bytes) {
  const Status malformed = DataLoss("tissue mask: malformed");
  const std::size_t line = bytes.find('\n');
  if (line == std::string_view::npos) return malformed;
  ops::TissueMask mask;
  const char* end = bytes.data() + line;
  const auto height = std::from_chars(bytes.data(), end, mask.height);
  if (height.ec != std::errc() || height.ptr == end || *height.ptr != ' ') return malformed;
  const auto width = std::from_chars(height.ptr + 1, end, mask.width);
  if (width.ec != std::errc() || width.ptr != end || mask.height < 1 || mask.width < 1 ||
      mask.height > kMaxTissuePicture || mask.width > kMaxTissuePicture / mask.height) {
    return malformed;
  }
  bytes.remove_prefix(line + 1);
  const auto pixels = static_cast<std::size_t>(mask.height * mask.width);
  if (bytes.size() != (pixels + 7) / 8) return malformed;
  for (std::size_t i = 0; i < pixels; ++i) {
    mask.pixels.push_back(static_cast<std::uint8_t>(bytes[i / 8]) >> (i % 8) & 1);
  }
  return mask;
}

StatusOr<std::vector<std::uint8_t>> FramesOnTissue(const ops::TissueMask& mask,
                                                   const SpectraGrid& grid,
                                                   const ops::FrameRange& frames) {
  PB_ASSIGN_OR_RETURN(const ops::TissueCoverage coverage,
                      ops::TissueCoverage::Create(mask, grid.height, grid.width));
  return coverage.Wanted(frames, grid.options.frame, grid.options.hop, kTissueFraction);
}

}  // namespace patchbay::workers
