// SHA-256 names content; crc32c guards bytes in flight and on disk.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay {

/// A SHA-256 value.
struct Digest {
  std::array<std::uint8_t, 32> bytes{};

  auto operator<=>(const Digest&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Digest& d) {
    return H::combine(std::move(h), d.bytes);
  }
  /// 64 lower-case hex digits.
  std::string Hex() const;
  /// InvalidArgument unless exactly 64 hex digits.
  static StatusOr<Digest> FromHex(std::string_view hex);
};

/// Incremental SHA-256. Not thread-safe; one owner.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view text);
  /// The digest of all that was added. The object starts afresh.
  Digest Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest Sha256Of(std::span<const std::byte> bytes);
Digest Sha256Of(std::string_view text);
/// Rows of one length at one distance; bytes in one piece are one row. A view.
struct ByteRows {
  const std::byte* first = nullptr;
  std::size_t row_bytes = 0;
  std::int64_t stride_bytes = 0;  ///< from row to row
  std::size_t rows = 1;
};
/// How many items are hashed side by side on this processor where there are enough: two by the SHA
/// instructions, or sixteen by AVX-512, whichever is faster on it. The first call measures it, in
/// less than a millisecond.
std::size_t Sha256SideBySide();
/// Sha256Of the rows of each item, one after another, several items side by side where the
/// processor can: up to twice the bytes of one.
std::vector<Digest> Sha256OfEach(std::span<const ByteRows> items);
/// The same, `side_by_side` at once: 2, or 16 where HasSixteenShaLanes.
std::vector<Digest> Sha256OfEach(std::span<const ByteRows> items, std::size_t side_by_side);

/// The digests of items that arrive in parts. `next(i)` returns the next bytes of item i, valid
/// until the next call for i, or no bytes at the item's end. Its first error ends the hashing.
using NextBytes = std::function<StatusOr<std::span<const std::byte>>(std::size_t item)>;
StatusOr<std::vector<Digest>> Sha256OfEach(std::size_t items, const NextBytes& next);

Digest HmacSha256(std::span<const std::byte> key, std::string_view text);

/// CRC-32C (Castagnoli) as in RFC 3720 and the Zarr crc32c codec. Chain by passing the previous
/// result as `seed`.
std::uint32_t Crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Fills with bytes from the kernel's generator (keys, secrets, incarnations: never for patches).
void FillRandom(std::span<std::byte> out);
std::uint64_t RandomU64();

}  // namespace patchbay
