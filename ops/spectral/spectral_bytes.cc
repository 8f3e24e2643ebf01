// Sums as bytes: to the scheduler as a task's result (Encode), to a file (EncodeCoefficients).
#include <bit>
#include <cstring>

#include "ops/spectral/spectral_sums.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

constexpr std::string_view kSumsMagic = "PSS1", kCoefficientsMagic = "PSC1";
constexpr std::size_t kChecksumBytes = 4;
constexpr int kVarintBits = 7;
/// A frame's power in all rings, scaled, is below 2^64 (Parseval, frame 512); one bit for rounding.
constexpr int kFramePowerBits = 65;

Status Corrupt(std::string_view what, std::string_view cause) {
  return DataLoss("decode spectral ", what, ": ", cause);
}

void PutVarint(absl::uint128 value, std::string& out) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(static_cast<std::uint8_t>(value) | 0x80));
    value >>= kVarintBits;
  }
  out.push_back(static_cast<char>(static_cast<std::uint8_t>(value)));
}

void PutLittle(std::uint64_t value, int bytes, std::string& out) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xFF));
}

void PutChecksum(std::string& out) {
  PutLittle(Crc32c(AsBytes(out)), static_cast<int>(kChecksumBytes), out);
}

int FrameBits(const SpectralSums& sums) { return std::countr_zero(sums.ring_power.size() - 1) + 1; }

/// Reads the output of the Put functions. After the first failure every value is 0 and ok() is
/// false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && rest_.empty(); }

  /// `bits`: the most bits of the value. A value that PutVarint would have written differently
  /// fails.
  absl::uint128 Varint(int bits) {
    absl::uint128 value = 0;
    for (int shift = 0; shift < bits; shift += kVarintBits) {
      if (!ok_ || rest_.empty()) break;
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      const unsigned digit = byte & 0x7F;
      if (bits - shift < kVarintBits && digit >> (bits - shift) != 0) break;
      value |= absl::uint128(digit) << shift;
      if (byte < 0x80) {
        if (digit == 0 && shift > 0) break;
        return value;
      }
    }
    ok_ = false;
    return 0;
  }

  std::uint64_t Little(int bytes) {
    if (!ok_ || rest_.size() < static_cast<std::size_t>(bytes)) {
      ok_ = false;
      return 0;
    }
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      value |= std::uint64_t{static_cast<std::uint8_t>(rest_[static_cast<std::size_t>(i)])}
               << (8 * i);
    }
    rest_.remove_prefix(static_cast<std::size_t>(bytes));
    return value;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

/// The bytes between magic and checksum, when both are right.
StatusOr<std::string_view> Body(std::string_view bytes, std::string_view magic,
                                std::string_view what) {
  if (bytes.size() < magic.size() + kChecksumBytes || bytes.substr(0, magic.size()) != magic) {
    return Corrupt(what, "not such bytes");
  }
  const std::string_view covered = bytes.substr(0, bytes.size() - kChecksumBytes);
  Reader stored(bytes.substr(covered.size()));
  if (stored.Little(kChecksumBytes) != Crc32c(AsBytes(covered))) {
    return Corrupt(what, "crc32c mismatch");
  }
  return covered.substr(magic.size());
}

/// Whether the counters can be those of `sums.frames` frames.
Status CheckConsistent(const SpectralSums& sums, int frame_bits) {
  if (sums.frames > kMaxSpectralFrames) return Corrupt("sums", "too many frames");
  absl::uint128 n = 0, low = 0, high = 0, low_squares = 0, high_squares = 0;
  constexpr std::uint64_t kWidth = kSpectralSteps / 4;  // steps of q in a bin
  static_assert(kWidth == kSpectralSteps * kSpectralBinDb);
  for (std::uint64_t i = 0; i < kSpectralBins; ++i) {
    const absl::uint128 count = sums.histogram[i];
    n += count;
    if (n > absl::uint128(kMaxSpectralFrames) << (2 * frame_bits)) break;
    const std::uint64_t first = i * kWidth, last = first + kWidth - 1;
    low += count * first;
    high += count * last;
    low_squares += count * first * first;
    high_squares += count * last * last;
  }
  if (n != absl::uint128(sums.frames) << (2 * frame_bits)) {
    return Corrupt("sums", "the histogram does not hold the frames' coefficients");
  }
  if (sums.sum_q < low || sums.sum_q > high || sums.sum_qq < low_squares ||
      sums.sum_qq > high_squares) {
    return Corrupt("sums", "a sum contradicts the histogram");
  }
  for (const absl::uint128 power : sums.ring_power) {
    if (power > absl::uint128(sums.frames) << kFramePowerBits) {
      return Corrupt("sums", "a ring has more power than the frames can have");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string Encode(const SpectralSums& sums) {
  std::string out(kSumsMagic);
  out.push_back(static_cast<char>(FrameBits(sums)));
  PutVarint(sums.frames, out);
  PutVarint(sums.sum_q, out);
  PutVarint(sums.sum_qq, out);
  for (const std::uint64_t count : sums.histogram) PutVarint(count, out);
  for (std::size_t k = 1; k < sums.ring_power.size(); ++k) PutVarint(sums.ring_power[k], out);
  PutChecksum(out);
  return out;
}

StatusOr<SpectralSums> Decode(std::string_view bytes, const plan::SpectralOptions& options) {
  PB_RETURN_IF_ERROR(Annotate(options.Check(), "spectral"));
  PB_ASSIGN_OR_RETURN(const std::string_view body, Body(bytes, kSumsMagic, "sums"));
  SpectralSums sums(options);
  Reader reader(body);
  const int frame_bits = FrameBits(sums);
  if (reader.Little(1) != static_cast<std::uint64_t>(frame_bits)) {
    return Corrupt("sums", StrCat("expected frames of ", options.frame));
  }
  sums.frames = absl::Uint128Low64(reader.Varint(64));
  sums.sum_q = reader.Varint(128);
  sums.sum_qq = reader.Varint(128);
  for (std::uint64_t& count : sums.histogram) count = absl::Uint128Low64(reader.Varint(64));
  for (std::size_t k = 1; k < sums.ring_power.size(); ++k) sums.ring_power[k] = reader.Varint(128);
  if (!reader.AtEnd()) return Corrupt("sums", "malformed");
  PB_RETURN_IF_ERROR(CheckConsistent(sums, frame_bits));
  return sums;
}

std::string EncodeCoefficients(const SpectralSums& sums) {
  std::string out(kCoefficientsMagic);
  out.reserve(out.size() + 16 + 16 * sums.coefficient_q.size());
  PutLittle(static_cast<std::uint64_t>(FrameBits(sums)), 1, out);
  PutLittle(sums.frames, 8, out);
  for (const std::uint64_t sum : sums.coefficient_q) PutLittle(sum, 8, out);
  for (const std::uint64_t sum : sums.coefficient_qq) PutLittle(sum, 8, out);
  PutChecksum(out);
  return out;
}

Status DecodeCoefficients(std::string_view bytes, SpectralSums& sums) {
  PB_ASSIGN_OR_RETURN(const std::string_view body, Body(bytes, kCoefficientsMagic, "coefficients"));
  Reader reader(body);
  if (reader.Little(1) != static_cast<std::uint64_t>(FrameBits(sums)) ||
      reader.Little(8) != sums.frames) {
    return Corrupt("coefficients", "of other frames than the sums");
  }
  if (body.size() != 9 + 16 * sums.coefficient_q.size()) {
    return Corrupt("coefficients", "malformed");
  }
  for (std::uint64_t& sum : sums.coefficient_q) sum = reader.Little(8);
  for (std::uint64_t& sum : sums.coefficient_qq) sum = reader.Little(8);
  return absl::OkStatus();
}

}  // namespace patchbay::ops
