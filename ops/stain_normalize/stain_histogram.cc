#define HWY_BASELINE_TARGETS HWY_AVX2
#define HWY_COMPILE_ONLY_STATIC
#include "ops/stain_normalize/stain_histogram.h"

#include <algorithm>
#include <limits>

#include "hwy/highway.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

constexpr std::string_view kMagic = "PBSH1";
constexpr int kVarintBits = 7;
constexpr std::uint64_t kMaxCounted = std::numeric_limits<std::uint32_t>::max();

std::size_t ColoursOf(int bits) { return std::size_t{1} << (3 * bits); }

/// Pixels whose colour codes are computed at once.
constexpr std::int64_t kTogether = 8;
/// Pixels that are read with them: 28 bytes of 30.
constexpr std::int64_t kRead = kTogether + 2;

HWY_BEFORE_NAMESPACE();
namespace hn = hwy::HWY_NAMESPACE;
using EightCodes = hn::FixedTag<std::uint32_t, kTogether>;

std::uint32_t CodeOf(const std::uint8_t* p, int bits) {
  const int drop = 8 - bits;
  const std::uint32_t r = p[0] >> drop, g = p[1] >> drop, b = p[2] >> drop;
  return (((r << bits) | g) << bits) | b;
}

/// The codes of kTogether pixels; kRead pixels from `p` on must be readable.
hn::Vec<EightCodes> CodesOfEight(const std::uint8_t* p, int bits) {
  const hn::Repartition<std::uint8_t, EightCodes> bytes;
  const hn::Half<decltype(bytes)> four;
  alignas(32) static constexpr std::uint8_t kApart[] = {
      0, 1, 2, 0x80, 3, 4, 5, 0x80, 6, 7, 8, 0x80, 9, 10, 11, 0x80,
      0, 1, 2, 0x80, 3, 4, 5, 0x80, 6, 7, 8, 0x80, 9, 10, 11, 0x80};
  const auto packed = hn::Combine(bytes, hn::LoadU(four, p + 12), hn::LoadU(four, p));
  const auto pixels =  // red lowest
      hn::BitCast(EightCodes(), hn::TableLookupBytesOr0(packed, hn::Load(bytes, kApart)));
  const auto kept = hn::ShiftRightSame(pixels, 8 - bits);
  const auto mask = hn::Set(EightCodes(), (1u << bits) - 1);
  const auto red = hn::ShiftLeftSame(hn::And(kept, mask), 2 * bits);
  const auto green = hn::ShiftLeftSame(hn::And(hn::ShiftRight<8>(kept), mask), bits);
  return hn::Or(hn::Or(red, green), hn::And(hn::ShiftRight<16>(kept), mask));
}

/// Counts a row of `count` pixels by their codes.
void CountRow(const std::uint8_t* p, std::int64_t count, int bits, std::uint32_t* counts) {
  alignas(32) std::uint32_t code[kTogether];
  std::int64_t i = 0;
  for (; i + kRead <= count; i += kTogether, p += 3 * kTogether) {
    const auto eight = CodesOfEight(p, bits);
    hn::Store(eight, EightCodes(), code);
    // Counts of one colour wait for one another, and in the background all are of one.
    if (hn::AllTrue(EightCodes(), hn::Eq(eight, hn::Set(EightCodes(), hn::GetLane(eight))))) {
      counts[code[0]] += kTogether;
    } else {
      for (const std::uint32_t one : code) ++counts[one];
    }
  }
  for (; i < count; ++i, p += 3) ++counts[CodeOf(p, bits)];
}
HWY_AFTER_NAMESPACE();

/// The counts that are not 0, with their colours.
template <typename Count>
std::vector<StainHistogram::Entry> EntriesOf(std::span<const Count> counts) {
  std::vector<StainHistogram::Entry> entries;
  const auto none = std::count(counts.begin(), counts.end(), Count{0});
  entries.reserve(counts.size() - static_cast<std::size_t>(none));
  for (std::size_t colour = 0; colour < counts.size(); ++colour) {
    if (counts[colour] == 0) continue;
    entries.push_back({static_cast<std::uint32_t>(colour), counts[colour]});
  }
  return entries;
}

void PutVarint(std::uint64_t value, std::vector<std::byte>& out) {
  for (; value >> kVarintBits != 0; value >>= kVarintBits) {
    out.push_back(static_cast<std::byte>((value & 0x7f) | 0x80));
  }
  out.push_back(static_cast<std::byte>(value));
}

Status Damaged() { return DataLoss("read stain histogram: damaged"); }

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
    return InvalidArgument("count colours: expected interleaved pixels of RGB uint8");
  }
  if (counts_ == nullptr) counts_ = std::make_unique<std::uint32_t[]>(ColoursOf(bits_));
  for (std::int64_t z = 0; z < view.shape[0]; ++z) {
    for (std::int64_t y = 0; y < view.shape[1]; ++y) {
      const std::byte* row = view.data + z * view.stride_bytes[0] + y * view.stride_bytes[1];
      if (counted_ + static_cast<std::uint64_t>(view.shape[2]) > kMaxCounted) Fold();
      CountRow(reinterpret_cast<const std::uint8_t*>(row), view.shape[2], bits_, counts_.get());
      counted_ += static_cast<std::uint64_t>(view.shape[2]);
    }
  }
  return absl::OkStatus();
}

void StainCounter::Fold() {
  folded_.resize(ColoursOf(bits_));
  for (std::size_t colour = 0; counts_ != nullptr && colour < folded_.size(); ++colour) {
    folded_[colour] += counts_[colour];
  }
  if (counts_ != nullptr) std::fill_n(counts_.get(), ColoursOf(bits_), 0u);
  counted_ = 0;
}

Status StainCounter::Add(const StainHistogram& other) {
  if (other.bits != bits_) {
    return InvalidArgument("merge stain histograms: ", other.bits, " and ", bits_, " bits");
  }
  folded_.resize(ColoursOf(bits_));
  for (const StainHistogram::Entry& entry : other.entries) folded_[entry.colour] += entry.pixels;
  return absl::OkStatus();
}

StainHistogram StainCounter::Take() {
  if (!folded_.empty()) Fold();
  StainHistogram histogram{.bits = bits_, .entries = {}};
  if (!folded_.empty()) {
    histogram.entries = EntriesOf(std::span<const std::uint64_t>(folded_));
  } else if (counts_ != nullptr) {
    histogram.entries = EntriesOf(std::span<const std::uint32_t>(counts_.get(), ColoursOf(bits_)));
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
