// The Huffman codes of a sequential JPEG scan: tables, and a reader of blocks of coefficients.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace patchbay::tiles {

inline constexpr int kBlockSize = 64;

/// Bytes of zeros that must lie behind a scan: a reader looks at its end only between two groups of
/// blocks, and a block takes at most 64 codes of 31 bits.
inline constexpr std::size_t kScanPadding = 4096;

/// Where the coefficients of a block lie, in the order of their codes.
inline constexpr std::array<std::uint8_t, kBlockSize> kCodeOrder = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/// Reads the bits of a scan, most significant first. Its bytes have no stuffed zeros.
class CodeReader {
 public:
  explicit CodeReader(const std::uint8_t* scan) : start_(scan), next_(scan) {}

  /// At least 56 bits can be looked at and dropped after this.
  void Refill() {
    std::uint64_t word;
    std::memcpy(&word, next_, sizeof word);
    bits_ |= __builtin_bswap64(word) >> count_;
    next_ += (63 - count_) >> 3;
    count_ |= 56;
  }
  [[nodiscard]] std::uint32_t Peek(int bits) const {
    return static_cast<std::uint32_t>(bits_ >> (64 - bits));
  }
  void Drop(int bits) {
    bits_ <<= bits;
    count_ -= bits;
  }
  /// Bits dropped so far.
  [[nodiscard]] std::int64_t position() const { return (next_ - start_) * 8 - count_; }

 private:
  const std::uint8_t* start_;
  const std::uint8_t* next_;
  std::uint64_t bits_ = 0;
  int count_ = 0;
};

/// One table of codes, as lookups by the bits that come next.
class CodeTable {
 public:
  /// Bits looked at at once.
  static constexpr int kPeekBits = 10;

  /// Meaning of the next bits: a coefficient behind `run` zeros, or the end of the block.
  /// Packed: length in bits 0 to 4, 0 for an impossible code; run from bit 8; value from bit 16.
  /// With kIsLonger, which only lookups have, the bits of the value are in place of it, or the code
  /// itself is longer.
  using Symbol = std::uint32_t;
  static constexpr Symbol kIsLonger = 0x80;
  /// The run of a block's end: past any coefficient.
  static constexpr int kEndRun = 128;

  /// Reads a table's counts and symbols from the front of `bytes`, and takes them off. False when
  /// they are no table that libjpeg would take. `is_dc`: values without runs.
  bool Read(std::span<const std::uint8_t>& bytes, bool is_dc);
  [[nodiscard]] bool is_read() const { return !source_.empty(); }

  /// The symbol that the reader, refilled, is at. An impossible code is 0.
  [[nodiscard]] Symbol Next(const CodeReader& reader) const {
    const Symbol symbol = symbols_[reader.Peek(kPeekBits)];
    return (symbol & kIsLonger) != 0 ? Longer(symbol, reader.Peek(32)) : symbol;
  }

  /// As many symbols as the lookup holds, of which only the length is wanted: bits in 0 to 3,
  /// kIsEnd, coefficients with their runs from bit 8. 0 where it holds not even one.
  [[nodiscard]] std::uint16_t NextSeveral(const CodeReader& reader) const {
    return several_[reader.Peek(kPeekBits)];
  }
  static constexpr std::uint16_t kIsEnd = 0x80;

 private:
  /// The value that the last `value_bits` of `bits` stand for; at least one.
  static std::uint32_t ValueOf(std::uint32_t bits, int value_bits) {
    const std::uint32_t word = bits & ((1u << value_bits) - 1);
    return word >> (value_bits - 1) != 0 ? word : word + 1 - (1u << value_bits);
  }
  [[nodiscard]] Symbol Longer(Symbol symbol, std::uint32_t bits) const {
    if (symbol == kIsLonger) return SymbolOf(bits, kPeekBits + 1);
    const int length = static_cast<int>(symbol & 31), value_bits = static_cast<int>(symbol >> 16);
    return (symbol & 0xFF1F) | ValueOf(bits >> (32 - length), value_bits) << 16;
  }
  [[nodiscard]] Symbol SymbolOf(std::uint32_t bits, int length_min) const;
  [[nodiscard]] Symbol LookupOf(std::uint32_t bits) const;
  void FillLookups();

  std::string source_;  ///< counts and symbols, as they were read
  bool is_dc_ = false;
  std::array<std::uint32_t, 18> end_{};  ///< first code of 16 bits behind those of each length
  std::array<int, 18> first_{};          ///< symbols before those of each length
  std::array<std::uint32_t, 18> start_{};
  std::array<Symbol, 1 << kPeekBits> symbols_{};
  std::array<std::uint16_t, 1 << kPeekBits> several_{};
};

/// Reads a block's first coefficient, which is coded as the difference to the one before.
[[gnu::always_inline]] inline bool ReadDc(CodeReader& reader, const CodeTable& codes,
                                          std::uint32_t& dc) {
  reader.Refill();
  const CodeTable::Symbol symbol = codes.Next(reader);
  reader.Drop(symbol & 31);
  dc += static_cast<std::uint32_t>(static_cast<std::int32_t>(symbol) >> 16);
  return symbol != 0;
}

/// Reads a block's other coefficients into `block`, which is zero. Returns the number of the last
/// one, 0 for none, or -1 for codes that cannot be.
[[gnu::always_inline]] inline int ReadAc(CodeReader& reader, const CodeTable& codes,
                                         std::int16_t* block) {
  int k = 1, last = 0;
  do {
    reader.Refill();
    const CodeTable::Symbol symbol = codes.Next(reader);
    if (symbol == 0) [[unlikely]]
      return -1;
    reader.Drop(symbol & 31);
    k += static_cast<int>(symbol >> 8 & 0xFF);
    if (k >= kBlockSize) return k >= CodeTable::kEndRun ? last : -1;
    block[kCodeOrder[static_cast<std::size_t>(k)]] = static_cast<std::int16_t>(symbol >> 16);
    last = k;
  } while (++k < kBlockSize);
  return last;
}

/// The same without keeping them.
[[gnu::always_inline]] inline bool SkipAc(CodeReader& reader, const CodeTable& codes) {
  int k = 1;
  do {
    reader.Refill();
    const std::uint16_t several = codes.NextSeveral(reader);
    const int after = k + (several >> 8);
    if (several != 0 && after < kBlockSize) [[likely]] {
      reader.Drop(several & 15);
      if ((several & CodeTable::kIsEnd) != 0) return true;
      k = after;
      continue;
    }
    const CodeTable::Symbol symbol = codes.Next(reader);
    if (symbol == 0) [[unlikely]]
      return false;
    reader.Drop(symbol & 31);
    k += static_cast<int>(symbol >> 8 & 0xFF) + 1;
    if (k > kBlockSize) return k > CodeTable::kEndRun;
  } while (k < kBlockSize);
  return true;
}

}  // namespace patchbay::tiles
