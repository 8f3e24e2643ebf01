#include "workers/jobs/labels/tissue_colours.h"

#include <algorithm>
#include <utility>

#include "runtime/core/runs.h"

namespace patchbay::workers {
namespace {

constexpr char kTissueClass[] = "tissue";
constexpr double kBackground = 255;

}  // namespace

StatusOr<std::unique_ptr<TissueColours>> TissueColours::Open(const Folders& allowed,
                                                             const std::string& store,
                                                             const plan::ClassTable& classes) {
  const auto tissue =
      std::find_if(classes.classes.begin(), classes.classes.end(),
                   [](const plan::LabelClass& one) { return one.name == kTissueClass; });
  if (tissue == classes.classes.end()) return nullptr;
  PB_ASSIGN_OR_RETURN(auto image, OpenImage(allowed, store));
  const ImageLayout& layout = image->layout();
  if (!IsRgb(layout)) return nullptr;
  return std::unique_ptr<TissueColours>(
      new TissueColours(std::move(image), static_cast<std::uint8_t>(tissue->value)));
}

TissueColours::TissueColours(std::unique_ptr<ImageSource> image, std::uint8_t value)
    : image_(std::move(image)), value_(value), scratch_(image_->MakeScratch()) {}

Status TissueColours::AddRow(std::int64_t row, std::int64_t side,
                             const std::vector<zarr::LabelCell>& chunks) {
  const Box whole = WholeOf(image_->layout().levels[0].size);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (chunks[i].pixels == nullptr && chunks[i].value != value_) continue;
    const auto column = static_cast<std::int64_t>(i);
    const Box box = Intersect(Box2D(row * side, column * side, side, side), whole);
    PB_RETURN_IF_ERROR(AddChunk(box, side, chunks[i]));
  }
  return absl::OkStatus();
}

Status TissueColours::AddChunk(const Box& box, std::int64_t side, const zarr::LabelCell& chunk) {
  const auto view_of = [&](std::int64_t y, std::int64_t x, std::int64_t height,
                           std::int64_t width) {
    TensorView view = ContiguousView<3>(pixels_.data() + (y * box.width + x) * 3, DType::kUint8,
                                        {height, width, 3});
    view.stride_bytes[0] = box.width * 3;
    return view;
  };
  if (chunk.pixels != nullptr &&
      std::find(chunk.pixels.get(), chunk.pixels.get() + side * box.height, value_) ==
          chunk.pixels.get() + side * box.height) {
    return absl::OkStatus();
  }
  pixels_.resize(static_cast<std::size_t>(3 * box.height * box.width));
  PB_RETURN_IF_ERROR(image_->Fetch(0, box, encoded_));
  PB_RETURN_IF_ERROR(
      image_->Decode(encoded_, view_of(0, 0, box.height, box.width), kBackground, *scratch_));
  if (chunk.pixels == nullptr) return colours_.Add(view_of(0, 0, box.height, box.width));
  for (std::int64_t y = 0; y < box.height; ++y) {
    const std::uint8_t* row = chunk.pixels.get() + y * side;
    for (std::int64_t x = 0; x < box.width;) {
      const std::int64_t run = RunLength(row + x, box.width - x);
      if (row[x] == value_) PB_RETURN_IF_ERROR(colours_.Add(view_of(y, x, 1, run)));
      x += run;
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers
