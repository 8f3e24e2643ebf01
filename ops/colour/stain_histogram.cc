#include "ops/colour/stain_histogram.h"

#include <algorithm>
#include <limits>

#include "runtime/base/strings.h"

namespace patchbay::ops {
namespace {

constexpr std::string_view kMagic = "PBSH1";
constexpr int kVarintBits = 7;
constexpr std::uint64_t kMaxCounted = std::numeric_limits<std::uint32_t>::max();

std::size_t ColoursOf(int bits) { return std::size_t{1} << (3 * bits); }

void PutVarint(std::uint64_t value, std::vector<std::byte>& out) {
  for (; value >> kVarintBits != 0; value >>= kVarintBits) {
    out.push_back(static_cast<std::byte>((value & 0x7f) | 0x80));
  }
  out.push_back(static_cast<std::byte>(value));
}

Status Damaged() { return absl::DataLossError("read stain histogram: damaged"); }

StatusOr<std::uint64_t> TakeVarint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += kVarintBits) {
    if (bytes.empty()) return Damaged();
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return Damaged();
}

}  // namespace

std::uint64_t StainHistogram::Pixels() const {
  std::uint64_t pixels = 0;
  for (const Entry& entry : entries) pixels += entry.pixels;
  return pixels;
}

StainCounter::StainCounter(int bits) : bits_(bits) {
  PB_CHECK(bits >= 1 && bits <= kMaxColourBits);
}

Status StainCounter::Add(const ConstTensorView& view) {
  const bool has_slices = view.rank == 4;
  if (view.rank == 3) return Add(WithDepth(view));
  if (!has_slices || view.dtype != DType::kUint8 || view.shape[3] != 3 ||
      view.stride_bytes[3] != 1 || view.stride_bytes[2] != 3) {
    return absl::InvalidArgumentError("count colours: expected interleaved pixels of RGB uint8");
  }
  if (counts_ == nullptr) counts_ = std::make_unique<std::uint32_t[]>(2 * ColoursOf(bits_));
  for (std::int64_t z = 0; z < view.shape[0]; ++z) {
    for (std::int64_t y = 0; y < view.shape[1]; ++y) {
      const std::byte* row = view.data + z * view.stride_bytes[0] + y * view.stride_bytes[1];
      if (counted_ + static_cast<std::uint64_t>(view.shape[2]) > kMaxCounted) Fold();
      AddRow(reinterpret_cast<const std::uint8_t*>(row), view.shape[2]);
      counted_ += static_cast<std::uint64_t>(view.shape[2]);
    }
  }
  return absl::OkStatus();
}

void StainCounter::AddRow(const std::uint8_t* p, std::int64_t count) {
  const int drop = 8 - bits_, bits = bits_;
  std::uint32_t* const counts = counts_.get();
  const auto colour = [drop, bits](const std::uint8_t* pixel) {
    const std::uint32_t r = pixel[0] >> drop, g = pixel[1] >> drop, b = pixel[2] >> drop;
    return static_cast<std::size_t>((((r << bits) | g) << bits) | b);
  };
  std::int64_t i = 0;
  for (; i + 2 <= count; i += 2, p += 6) {
    ++counts[2 * colour(p)];
    ++counts[2 * colour(p + 3) + 1];
  }
  if (i < count) ++counts[2 * colour(p)];
}

void StainCounter::Fold() {
  folded_.resize(ColoursOf(bits_));
  for (std::size_t colour = 0; counts_ != nullptr && colour < folded_.size(); ++colour) {
    folded_[colour] += std::uint64_t{counts_[2 * colour]} + counts_[2 * colour + 1];
  }
  if (counts_ != nullptr) std::fill_n(counts_.get(), 2 * ColoursOf(bits_), 0u);
  counted_ = 0;
}

Status StainCounter::Add(const StainHistogram& other) {
  if (other.bits != bits_) {
    return absl::InvalidArgumentError(
        StrCat("merge stain histograms: ", other.bits, " and ", bits_, " bits"));
  }
  folded_.resize(ColoursOf(bits_));
  for (const StainHistogram::Entry& entry : other.entries) folded_[entry.colour] += entry.pixels;
  return absl::OkStatus();
}

StainHistogram StainCounter::Take() {
  StainHistogram histogram{.bits = bits_, .entries = {}};
  const std::size_t colours = ColoursOf(bits_);
  for (std::size_t colour = 0; colour < colours; ++colour) {
    std::uint64_t pixels = folded_.empty() ? 0 : folded_[colour];
    if (counts_ != nullptr) {
      pixels += std::uint64_t{counts_[2 * colour]} + counts_[2 * colour + 1];
    }
    if (pixels != 0) histogram.entries.push_back({static_cast<std::uint32_t>(colour), pixels});
  }
  counts_.reset();
  folded_.clear();
  counted_ = 0;
  return histogram;
}

std::vector<std::byte> SerialiseHistogram(const StainHistogram& histogram) {
  std::vector<std::byte> out;
  for (const char c : kMagic) out.push_back(static_cast<std::byte>(c));
  PutVarint(static_cast<std::uint64_t>(histogram.bits), out);
  PutVarint(histogram.entries.size(), out);
  std::uint32_t next = 0;
  for (const StainHistogram::Entry& entry : histogram.entries) {
    PutVarint(entry.colour - next, out);
    PutVarint(entry.pixels, out);
    next = entry.colour + 1;
  }
  return out;
}

StatusOr<StainHistogram> ParseHistogram(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return Damaged();
  bytes.remove_prefix(kMagic.size());
  PB_ASSIGN_OR_RETURN(const std::uint64_t bits, TakeVarint(bytes));
  if (bits < 1 || bits > kMaxColourBits) return Damaged();
  StainHistogram histogram{.bits = static_cast<int>(bits), .entries = {}};
  PB_ASSIGN_OR_RETURN(const std::uint64_t count, TakeVarint(bytes));
  if (count > ColoursOf(histogram.bits) || count > bytes.size()) return Damaged();
  histogram.entries.reserve(count);
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    PB_ASSIGN_OR_RETURN(const std::uint64_t skipped, TakeVarint(bytes));
    PB_ASSIGN_OR_RETURN(const std::uint64_t pixels, TakeVarint(bytes));
    if (skipped >= ColoursOf(histogram.bits) - next || pixels == 0) return Damaged();
    next += skipped;
    histogram.entries.push_back({static_cast<std::uint32_t>(next), pixels});
    ++next;
  }
  if (!bytes.empty()) return Damaged();
  return histogram;
}

}  // namespace patchbay::ops
