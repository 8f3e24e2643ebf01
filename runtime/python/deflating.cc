#include "runtime/python/deflating.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace patchbay::python {
namespace {

constexpr std::size_t kBlock = 32768;   // bytes of input with codes of their own
constexpr std::size_t kWindow = 32768;  // the farthest match
constexpr std::size_t kLeastMatch = 5;  // shorter ones cost more than their literals
constexpr std::size_t kMostMatch = 258;
constexpr int kHashBits = 13;
constexpr std::uint32_t kMostCodeBits = 15;
constexpr std::size_t kEnd = 256, kLengths = 286, kDistances = 30;

/// Literals, then a match unless its length is 0.
struct Sequence {
  std::uint32_t literals;
  std::uint16_t length, distance;  ///< the distance less 1
};

/// A symbol with the bits behind it.
struct Extra {
  std::uint32_t symbol, bits, value;
};

Extra OfLength(std::uint32_t length) {
  const std::uint32_t v = length - 3;
  if (v < 8) return {257 + v, 0, 0};
  if (length == kMostMatch) return {285, 0, 0};
  const auto bits = static_cast<std::uint32_t>(std::bit_width(v)) - 3;
  return {257 + bits * 4 + (v >> bits), bits, v & ((1U << bits) - 1)};
}

Extra OfDistance(std::uint32_t less_1) {
  if (less_1 < 4) return {less_1, 0, 0};
  const auto bits = static_cast<std::uint32_t>(std::bit_width(less_1)) - 2;
  return {bits * 2 + (less_1 >> bits), bits, less_1 & ((1U << bits) - 1)};
}

struct Code {
  std::uint32_t bits = 0, length = 0;
};

/// Sets the lengths of Huffman codes, 0 of symbols that do not occur; at least two do. Returns the
/// bits of all symbols together.
std::size_t CodeLengths(std::span<const std::uint32_t> counts, std::span<Code> codes) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order;  // count, symbol
  for (std::uint32_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) order.emplace_back(counts[i], i);
  }
  std::sort(order.begin(), order.end());
  const std::size_t leaves = order.size();
  for (std::uint32_t deepest = kMostCodeBits + 1; deepest > kMostCodeBits;) {
    // Leaves by their counts, then the nodes in the order in which they come: so both are sorted.
    std::vector<std::uint32_t> weight(2 * leaves - 1), parent(2 * leaves - 1),
        depth(2 * leaves - 1);
    for (std::size_t i = 0; i < leaves; ++i) weight[i] = order[i].first;
    std::size_t leaf = 0, node = leaves;
    for (std::size_t made = leaves; made < weight.size(); ++made) {
      for (int child = 0; child < 2; ++child) {
        const bool is_leaf = leaf < leaves && (node == made || weight[leaf] <= weight[node]);
        const std::size_t least = is_leaf ? leaf++ : node++;
        weight[made] += weight[least];
        parent[least] = static_cast<std::uint32_t>(made);
      }
    }
    deepest = 0;
    for (std::size_t i = weight.size() - 1; i-- > 0;) {
      depth[i] = depth[parent[i]] + 1;
      deepest = std::max(deepest, depth[i]);
    }
    for (std::size_t i = 0; i < leaves; ++i) {
      codes[order[i].second].length = depth[i];
      order[i].first = (order[i].first + 1) / 2;  // flatter, should a code have been too long
    }
  }
  std::size_t bits = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) bits += counts[i] * codes[i].length;
  return bits;
}

/// The canonical codes of these lengths, their first bit lowest.
void NumberCodes(std::span<Code> codes) {
  std::uint32_t next = 0;
  for (std::uint32_t length = 1; length <= kMostCodeBits; ++length, next <<= 1) {
    for (Code& code : codes) {
      if (code.length != length) continue;
      code.bits = 0;
      for (std::uint32_t bit = 0; bit < length; ++bit) {
        code.bits |= (next >> bit & 1) << (length - 1 - bit);
      }
      ++next;
    }
  }
}

class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* out) : out_(out) {}

  /// At most 56 bits until the next Flush.
  void Add(std::uint64_t bits, std::uint32_t count) {
    waiting_ |= bits << count_;
    count_ += count;
  }

  void Add(Code code) { Add(code.bits, code.length); }

  /// Writes whole bytes; up to 8 beyond them are touched.
  void Flush() {
    std::memcpy(out_, &waiting_, 8);
    out_ += count_ / 8;
    waiting_ >>= count_ & ~7U;
    count_ &= 7;
  }

  /// Begins the next byte; returns where it is.
  std::uint8_t* Align() {
    count_ = (count_ + 7) & ~7U;
    Flush();
    return out_;
  }

  void Skip(std::size_t bytes) { out_ += bytes; }

 private:
  std::uint8_t* out_;
  std::uint64_t waiting_ = 0;
  std::uint32_t count_ = 0;
};

/// Matches of one stream, found by the last place of their first four bytes.
class Matcher {
 public:
  explicit Matcher(const std::uint8_t* in) : in_(in) {}

  /// The sequences of the bytes from `at` to `end`.
  void Find(std::size_t at, std::size_t end, std::vector<Sequence>& found) {
    std::size_t first = at;
    while (at + 8 <= end) {
      const std::size_t from = std::exchange(last_[Hash(at)], static_cast<std::uint32_t>(at));
      std::size_t length = 0;
      if (from < at && at - from <= kWindow)
        length = SharedLength(from, at, std::min(end - at, kMostMatch));
      if (length < kLeastMatch) {
        at += 1 + (at - first) / 64;  // where nothing repeats fewer places are looked at
        continue;
      }
      found.push_back({static_cast<std::uint32_t>(at - first), static_cast<std::uint16_t>(length),
                       static_cast<std::uint16_t>(at - from - 1)});
      first = at += length;
      if (at + 8 <= end) last_[Hash(at - 1)] = static_cast<std::uint32_t>(at - 1);
    }
    found.push_back({static_cast<std::uint32_t>(end - first), 0, 0});
  }

 private:
  std::uint64_t Load(std::size_t at) const {
    std::uint64_t value;
    std::memcpy(&value, in_ + at, 8);
    return value;
  }

  std::size_t Hash(std::size_t at) const {
    return static_cast<std::uint32_t>(Load(at)) * 2654435761U >> (32 - kHashBits);
  }

  std::size_t SharedLength(std::size_t a, std::size_t b, std::size_t most) const {
    std::size_t n = 0;
    for (; n + 8 <= most; n += 8) {
      const std::uint64_t difference = Load(a + n) ^ Load(b + n);
      if (difference != 0) return n + static_cast<std::size_t>(std::countr_zero(difference)) / 8;
    }
    while (n < most && in_[a + n] == in_[b + n]) ++n;
    return n;
  }

  const std::uint8_t* in_;
  std::array<std::uint32_t, 1 << kHashBits> last_{};
};

/// One block: its sequences, and the codes of their symbols.
class Block {
 public:
  Block(const std::uint8_t* in, std::size_t size, bool is_last, const std::vector<Sequence>& found)
      : in_(in), size_(size), is_last_(is_last), found_(found) {
    std::array<std::uint32_t, kLengths> lengths{};
    std::array<std::uint32_t, kDistances> distances{1, 1};  // a code of fewer is no whole one
    Count(lengths, distances);
    bits_ += CodeLengths(lengths, lengths_) + CodeLengths(distances, distances_) + kHeadBits;
  }

  void Write(BitWriter& out) {
    if (bits_ >= size_ * 8) return WriteStored(out);
    NumberCodes(lengths_);
    NumberCodes(distances_);
    WriteHead(out);
    const std::uint8_t* at = in_;
    for (const Sequence& each : found_) {
      for (const std::uint8_t* end = at + each.literals; at < end;) {
        for (int i = 0; i < 3 && at < end; ++i) out.Add(lengths_[*at++]);
        out.Flush();
      }
      if (each.length == 0) continue;
      WriteMatch(out, each);
      at += each.length;
    }
    out.Add(lengths_[kEnd]);
    out.Flush();
  }

 private:
  static constexpr std::size_t kHeadBits = 74 + 5 * (kLengths + kDistances);  // at most
  static constexpr std::uint32_t kZeros = 18;  // a run of 11 to 138 lengths of 0

  void Count(std::span<std::uint32_t> lengths, std::span<std::uint32_t> distances) {
    const std::uint8_t* at = in_;
    for (const Sequence& each : found_) {
      for (const std::uint8_t* end = at + each.literals; at < end;) ++lengths[*at++];
      if (each.length == 0) continue;
      const Extra length = OfLength(each.length), distance = OfDistance(each.distance);
      ++lengths[length.symbol];
      ++distances[distance.symbol];
      bits_ += length.bits + distance.bits;
      at += each.length;
    }
    ++lengths[kEnd];
  }

  void WriteMatch(BitWriter& out, const Sequence& match) const {
    const Extra length = OfLength(match.length), distance = OfDistance(match.distance);
    out.Add(lengths_[length.symbol]);
    out.Add(length.value, length.bits);
    out.Add(distances_[distance.symbol]);
    out.Add(distance.value, distance.bits);
    out.Flush();
  }

  /// The lengths of both codes, in a code that is always the same.
  void WriteHead(BitWriter& out) const {
    std::array<Code, 19> code;
    for (const std::uint32_t symbol : {0, 4, 5, 6, 7, 8, 9, 10}) code[symbol].length = 4;
    for (const std::uint32_t symbol : {1, 2, 3, 11, 12, 13, 14, 15}) code[symbol].length = 5;
    code[kZeros].length = 2;
    NumberCodes(code);
    out.Add(is_last_ ? 5 : 4, 3);
    out.Add((kLengths - 257) | (kDistances - 1) << 5 | std::uint64_t{code.size() - 4} << 10, 14);
    out.Flush();
    for (const std::uint32_t symbol :
         {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}) {
      out.Add(code[symbol].length, 3);
      out.Flush();
    }
    std::array<std::uint32_t, kLengths + kDistances> all;
    std::ranges::transform(distances_,
                           std::ranges::transform(lengths_, all.begin(), &Code::length).out,
                           &Code::length);
    for (std::size_t i = 0; i < all.size();) {
      std::size_t zeros = 0;
      while (i + zeros < all.size() && zeros < 138 && all[i + zeros] == 0) ++zeros;
      if (zeros >= 11) {
        out.Add(code[kZeros]);
        out.Add(zeros - 11, 7);
        i += zeros;
      } else {
        out.Add(code[all[i++]]);
      }
      out.Flush();
    }
  }

  void WriteStored(BitWriter& out) const {
    out.Add(is_last_ ? 1 : 0, 3);
    std::uint8_t* to = out.Align();
    const auto size = static_cast<std::uint16_t>(size_), other = static_cast<std::uint16_t>(~size);
    std::memcpy(to, &size, 2);
    std::memcpy(to + 2, &other, 2);
    std::memcpy(to + 4, in_, size_);
    out.Skip(4 + size_);
  }

  const std::uint8_t* in_;
  std::size_t size_;
  bool is_last_;
  const std::vector<Sequence>& found_;
  std::size_t bits_ = 0;
  std::array<Code, kLengths> lengths_;
  std::array<Code, kDistances> distances_;
};

constexpr std::array<std::uint32_t, 256> kCrc32cTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = table[i] >> 1 ^ (table[i] & 1) * 0x82F63B78U;
  }
  return table;
}();

}  // namespace

std::uint32_t Crc32c(const std::uint8_t* in, std::size_t size) {
  std::uint32_t value = ~0U;
  for (std::size_t i = 0; i < size; ++i) {
    value = value >> 8 ^ kCrc32cTable[(value ^ in[i]) & 255];
  }
  return ~value;
}

std::size_t Deflate(const std::uint8_t* in, std::size_t size, std::uint8_t* out) {
  BitWriter writer(out);
  Matcher matcher(in);
  std::vector<Sequence> found;
  std::size_t at = 0;
  do {
    const std::size_t end = std::min(size, at + kBlock);
    found.clear();
    matcher.Find(at, end, found);
    Block(in + at, end - at, end == size, found).Write(writer);
    at = end;
  } while (at < size);
  return static_cast<std::size_t>(writer.Align() - out);
}

}  // namespace patchbay::python
