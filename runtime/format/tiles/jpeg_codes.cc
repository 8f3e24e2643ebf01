#include "runtime/format/tiles/jpeg_codes.h"

#include <algorithm>

namespace patchbay::tiles {
namespace {

constexpr int kLengths = 16;  ///< a code has at most so many bits
/// Bits of the largest difference of first coefficients, and of the largest other one, that samples
/// of 8 bits have.
constexpr int kDcBitsMax = 11, kAcBitsMax = 10;

}  // namespace

bool CodeTable::Read(std::span<const std::uint8_t>& bytes, bool is_dc) {
  if (bytes.size() < kLengths) return false;
  std::size_t symbols = 0;
  for (int i = 0; i < kLengths; ++i) symbols += bytes[static_cast<std::size_t>(i)];
  if (symbols == 0 || symbols > 256 || bytes.size() < kLengths + symbols) return false;
  const std::string_view source(reinterpret_cast<const char*>(bytes.data()), kLengths + symbols);
  bytes = bytes.subspan(source.size());
  if (is_dc == is_dc_ && source == source_) return true;
  source_.clear();
  std::uint32_t code = 0;  // in 16 bits
  int first = 0;
  for (int length = 1; length <= kLengths; ++length) {
    const auto at = static_cast<std::size_t>(length);
    const auto count = static_cast<std::uint8_t>(source[at - 1]);
    first_[at] = first;
    start_[at] = code;
    first += count;
    code += std::uint32_t{count} << (kLengths - length);
    // No code is of ones alone.
    if (code >= 0x10000) return false;
    end_[at] = code;
  }
  for (const char symbol : source.substr(kLengths)) {
    const int value_bits = static_cast<std::uint8_t>(symbol) & 15;
    if (is_dc ? static_cast<std::uint8_t>(symbol) > kDcBitsMax : value_bits > kAcBitsMax) {
      return false;
    }
  }
  is_dc_ = is_dc;
  source_ = source;
  FillLookups();
  return true;
}

/// The symbol at the front of 32 bits, whose code has at least so many; 0 for an impossible code.
CodeTable::Symbol CodeTable::SymbolOf(std::uint32_t bits, int length_min) const {
  const std::uint32_t code = bits >> 16;
  auto length = static_cast<std::size_t>(length_min);
  while (length <= kLengths && code >= end_[length]) ++length;
  if (length > kLengths) return 0;
  const auto place = static_cast<std::size_t>(first_[length]) +
                     ((code - start_[length]) >> (kLengths - static_cast<int>(length)));
  const auto symbol = static_cast<std::uint8_t>(source_[kLengths + place]);
  const int value_bits = symbol & 15;
  const int all = static_cast<int>(length) + value_bits;
  // Without a value: 15 zeros and a coefficient of 0, or the end of the block.
  const bool is_end = !is_dc_ && value_bits == 0 && symbol >> 4 != 15;
  const int run = is_dc_ ? 0 : is_end ? kEndRun : symbol >> 4;
  return static_cast<Symbol>(all) | static_cast<Symbol>(run) << 8 |
         (value_bits > 0 ? ValueOf(bits >> (32 - all), value_bits) << 16 : 0);
}

/// The entry for bits of which only the first kPeekBits are known.
CodeTable::Symbol CodeTable::LookupOf(std::uint32_t bits) const {
  const Symbol symbol = SymbolOf(bits, 1);
  const int length = static_cast<int>(symbol & 31);
  if (symbol != 0 && length <= kPeekBits) return symbol;
  std::size_t code_length = 1;
  while (code_length <= kPeekBits && bits >> 16 >= end_[code_length]) ++code_length;
  if (symbol == 0 || code_length > kPeekBits) return kIsLonger;
  return (symbol & 0xFFFF) | kIsLonger |
         static_cast<Symbol>(length - static_cast<int>(code_length)) << 16;
}

void CodeTable::FillLookups() {
  for (std::uint32_t bits = 0; bits < symbols_.size(); ++bits) {
    const std::uint32_t word = bits << (32 - kPeekBits);
    symbols_[bits] = LookupOf(word);
    int length = 0, advance = 0;
    bool is_end = false;
    while (!is_end) {
      const Symbol next = SymbolOf(word << length, 1);
      if (next == 0 || length + static_cast<int>(next & 31) > kPeekBits) break;
      length += static_cast<int>(next & 31);
      const int run = static_cast<int>(next >> 8 & 0xFF);
      is_end = run == kEndRun;
      if (!is_end) advance += run + 1;
    }
    several_[bits] =
        static_cast<std::uint16_t>(length | (is_end ? kIsEnd : 0) | std::min(advance, 255) << 8);
  }
}

}  // namespace patchbay::tiles
