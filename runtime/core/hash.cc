#include "runtime/core/hash.h"

#include <cstring>

#include <nmmintrin.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include "absl/strings/escaping.h"
#include "runtime/core/strings.h"

namespace patchbay {

std::string Digest::Hex() const {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

StatusOr<Digest> Digest::FromHex(std::string_view hex) {
  const bool digits = hex.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  if (hex.size() != 64 || !digits) {
    return InvalidArgument("parse digest: ", hex, ": not 64 hex digits");
  }
  Digest d;
  const std::string raw = absl::HexStringToBytes(std::string(hex));
  std::memcpy(d.bytes.data(), raw.data(), d.bytes.size());
  return d;
}

struct Sha256::State {
  EVP_MD_CTX* ctx = EVP_MD_CTX_new();
  State() { EVP_DigestInit_ex(ctx, EVP_sha256(), nullptr); }
  ~State() { EVP_MD_CTX_free(ctx); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(state_->ctx, bytes.data(), bytes.size());
}

void Sha256::Update(std::string_view text) { Update(AsBytes(text)); }

Digest Sha256::Finish() {
  Digest d;
  EVP_DigestFinal_ex(state_->ctx, d.bytes.data(), nullptr);
  EVP_DigestInit_ex(state_->ctx, EVP_sha256(), nullptr);
  return d;
}

Digest Sha256Of(std::span<const std::byte> bytes) {
  Sha256 h;
  h.Update(bytes);
  return h.Finish();
}

Digest Sha256Of(std::string_view text) { return Sha256Of(AsBytes(text)); }

Digest HmacSha256(std::span<const std::byte> key, std::string_view text) {
  Digest d;
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), d.bytes.data(), &size);
  return d;
}

namespace {

/// Three streams in parallel hide the crc instruction's latency of three cycles. Two stream
/// lengths: long for chunks, short for the rest.
constexpr std::size_t kLongStream = 8192, kShortStream = 256;

/// For each byte of a crc, the crc after `zeros` further zero bytes: appending is linear over
/// GF(2).
using ShiftTable = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr std::uint32_t AppendZeroByte(std::uint32_t crc) {
  for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  return crc;
}

constexpr std::uint32_t Apply(const std::array<std::uint32_t, 32>& columns, std::uint32_t crc) {
  std::uint32_t out = 0;
  for (std::size_t bit = 0; bit < 32; ++bit) out ^= crc >> bit & 1 ? columns[bit] : 0;
  return out;
}

constexpr ShiftTable MakeShiftTable(std::size_t zeros) {  // `zeros` is a power of two
  std::array<std::uint32_t, 32> columns{};
  for (std::size_t bit = 0; bit < 32; ++bit) columns[bit] = AppendZeroByte(std::uint32_t{1} << bit);
  for (std::size_t n = 1; n < zeros; n *= 2) {
    std::array<std::uint32_t, 32> squared{};
    for (std::size_t bit = 0; bit < 32; ++bit) squared[bit] = Apply(columns, columns[bit]);
    columns = squared;
  }
  ShiftTable table{};
  for (std::size_t byte = 0; byte < 4; ++byte) {
    for (std::uint32_t value = 0; value < 256; ++value) {
      table[byte][value] = Apply(columns, value << (8 * byte));
    }
  }
  return table;
}

constexpr ShiftTable kLongShift = MakeShiftTable(kLongStream);
constexpr ShiftTable kShortShift = MakeShiftTable(kShortStream);

std::uint64_t Shift(const ShiftTable& table, std::uint64_t crc) {
  return table[0][crc & 255] ^ table[1][crc >> 8 & 255] ^ table[2][crc >> 16 & 255] ^
         table[3][crc >> 24 & 255];
}

std::uint64_t Step(std::uint64_t crc, const std::byte* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return _mm_crc32_u64(crc, word);
}

/// Consumes three streams of `length` bytes at a time, as long as the input has them.
std::uint64_t ThreeWay(std::uint64_t crc, const std::byte*& p, std::size_t& n, std::size_t length,
                       const ShiftTable& table) {
  while (n >= 3 * length) {
    std::uint64_t second = 0, third = 0;
    for (std::size_t i = 0; i < length; i += 8) {
      crc = Step(crc, p + i);
      second = Step(second, p + length + i);
      third = Step(third, p + 2 * length + i);
    }
    crc = Shift(table, Shift(table, crc) ^ second) ^ third;
    p += 3 * length;
    n -= 3 * length;
  }
  return crc;
}

}  // namespace

std::uint32_t Crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  std::uint64_t crc = ~seed;
  const std::byte* p = bytes.data();
  std::size_t n = bytes.size();
  crc = ThreeWay(crc, p, n, kLongStream, kLongShift);
  crc = ThreeWay(crc, p, n, kShortStream, kShortShift);
  for (; n >= 8; n -= 8, p += 8) crc = Step(crc, p);
  auto crc32 = static_cast<std::uint32_t>(crc);
  for (; n > 0; --n, ++p) crc32 = _mm_crc32_u8(crc32, static_cast<unsigned char>(*p));
  return ~crc32;
}

void FillRandom(std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = getrandom(out.data() + done, out.size() - done, 0);
    PB_CHECK(n > 0);
    done += static_cast<std::size_t>(n);
  }
}

std::uint64_t RandomU64() {
  std::uint64_t value;
  FillRandom(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace patchbay
