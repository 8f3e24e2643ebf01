#include "runtime/format/zarr/label_cells.h"

#include <cstring>

#include "runtime/core/runs.h"

namespace patchbay::zarr {

LabelCellEncoder::LabelCellEncoder(const ImageStoreSettings& settings)
    : settings_(settings), encoder_(settings), hasher_(settings) {}

Status LabelCellEncoder::Encode(const CellPart& part, EncodedCell& out) {
  const auto& [cell, height, width] = part;
  if (cell->pixels == nullptr) {
    PB_ASSIGN_OR_RETURN(const EncodedCell* constant, ConstantOf(cell->value, height, width));
    out = *constant;
    return absl::OkStatus();
  }
  waiting_.push_back(ViewOf(cell->pixels.get(), height, width));
  digests_.push_back(&out.pixels);
  if (waiting_.size() >= Sha256SideBySide()) HashWaiting();
  return EncodePixels(cell->pixels.get(), height, width, out.bytes);
}

void LabelCellEncoder::FinishDigests(LabelCellEncoder& other) {
  waiting_.insert(waiting_.end(), other.waiting_.begin(), other.waiting_.end());
  digests_.insert(digests_.end(), other.digests_.begin(), other.digests_.end());
  other.waiting_.clear();
  other.digests_.clear();
  HashWaiting();
}

void LabelCellEncoder::Count(const CellPart& part) { Tally(part, settings_.chunk.x, counts_); }

void LabelCellEncoder::HashWaiting() {
  const std::vector<bool> is_fill(waiting_.size(), false);
  const std::vector<Digest> found = hasher_.HashEach(waiting_, is_fill);
  for (std::size_t i = 0; i < found.size(); ++i) *digests_[i] = found[i];
  waiting_.clear();
  digests_.clear();
}

/// The chunk's pixels padded with background to a whole one, encoded.
Status LabelCellEncoder::EncodePixels(const std::uint8_t* pixels, std::int64_t height,
                                      std::int64_t width, std::vector<std::byte>& to) {
  const Extent& chunk = settings_.chunk;
  const auto size = static_cast<std::size_t>(chunk.Pixels());
  std::span<const std::byte> whole(reinterpret_cast<const std::byte*>(pixels), size);
  if (height < chunk.y || width < chunk.x) {
    raw_.assign(size, static_cast<std::byte>(settings_.fill_value));
    for (std::int64_t y = 0; y < height; ++y) {
      std::memcpy(raw_.data() + y * chunk.x, pixels + y * chunk.x, static_cast<std::size_t>(width));
    }
    whole = raw_;
  }
  return encoder_.Append(whole, to);
}

ConstTensorView LabelCellEncoder::ViewOf(const std::uint8_t* pixels, std::int64_t height,
                                         std::int64_t width) const {
  ConstTensorView view;
  view.data = reinterpret_cast<const std::byte*>(pixels);
  view.rank = 4;
  view.shape = {1, height, width, 1};
  view.stride_bytes = {settings_.chunk.Pixels(), settings_.chunk.x, 1, 1};
  return view;
}

StatusOr<const EncodedCell*> LabelCellEncoder::ConstantOf(std::uint8_t value, std::int64_t height,
                                                          std::int64_t width) {
  const std::array<std::int64_t, 3> key = {value, height, width};
  const auto known = constants_.find(key);
  if (known != constants_.end()) return &known->second;
  const std::vector<std::uint8_t> pixels(static_cast<std::size_t>(settings_.chunk.Pixels()), value);
  EncodedCell constant;
  constant.pixels = hasher_.Hash(ViewOf(pixels.data(), height, width), false);
  if (value != settings_.fill_value) {
    PB_RETURN_IF_ERROR(EncodePixels(pixels.data(), height, width, constant.bytes));
  }
  return &constants_.emplace(key, std::move(constant)).first->second;
}

void Tally(const CellPart& part, std::int64_t row_bytes, std::array<std::uint64_t, 256>& out) {
  const auto& [cell, height, width] = part;
  if (cell->pixels == nullptr) {
    out[cell->value] += static_cast<std::uint64_t>(height * width);
    return;
  }
  for (std::int64_t y = 0; y < height; ++y) {
    CountValues(cell->pixels.get() + y * row_bytes, width, out);
  }
}

}  // namespace patchbay::zarr
