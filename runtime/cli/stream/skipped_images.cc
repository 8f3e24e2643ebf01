#include "runtime/cli/stream/skipped_images.h"

#include <algorithm>
#include <utility>

#include "runtime/cli/skipped_files.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kSkippedSaid = 20;

}  // namespace

void ReportSkipped(Terminal& terminal, const client::Skipped& skipped) {
  PrintSkipped(terminal, skipped.passed_over);
  const std::size_t said = std::min(skipped.images.size(), kSkippedSaid);
  for (std::size_t i = 0; i < said; ++i) {
    terminal.Note(StrCat("skipped ", skipped.images[i].path, ": ", skipped.images[i].reason));
  }
  if (skipped.count > said) {
    terminal.Note(StrCat("skipped ", skipped.count, " images in all; --json lists the first ",
                         skipped.images.size()));
  }
  for (std::size_t i = 0; i < std::min(skipped.without_stain.size(), kSkippedSaid); ++i) {
    terminal.Note(StrCat(skipped.without_stain[i].path, ": no stain fit (",
                         skipped.without_stain[i].reason,
                         "): it is normalised with the shipped numbers"));
  }
  for (std::size_t i = 0; i < std::min(skipped.without_icc.size(), kSkippedSaid); ++i) {
    terminal.Note(StrCat(skipped.without_icc[i].path, ": icc_to_srgb: ",
                         skipped.without_icc[i].reason, ": its colours are taken for sRGB"));
  }
  for (std::size_t i = 0; i < std::min(skipped.mpp_corrected.size(), kSkippedSaid); ++i) {
    terminal.Note(StrCat(skipped.mpp_corrected[i].path, ": by the table's column mpp ",
                         skipped.mpp_corrected[i].reason));
  }
}

Json ToJson(const client::Skipped& skipped) {
  Json list = Json::array();
  for (const client::SkippedImage& image : skipped.images) {
    list.push_back({{"path", image.path}, {"reason", image.reason}});
  }
  Json value = {{"count", skipped.count}, {"images", std::move(list)}};
  for (const client::SkippedImage& image : skipped.without_stain) {
    value["without_stain"].push_back({{"path", image.path}, {"reason", image.reason}});
  }
  for (const client::SkippedImage& image : skipped.without_icc) {
    value["without_icc"].push_back({{"path", image.path}, {"reason", image.reason}});
  }
  for (const client::SkippedImage& image : skipped.mpp_corrected) {
    value["mpp_corrected"].push_back({{"path", image.path}, {"reason", image.reason}});
  }
  return value;
}

}  // namespace patchbay::cli
