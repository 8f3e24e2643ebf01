// Many SHA-256 at once: streams are cut into runs of whole blocks, and as many as the processor
// supports are hashed in parallel.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/core/hash.h"
#include "runtime/core/hash_blocks.h"

namespace patchbay {
namespace {

constexpr std::size_t kLanes = 16;
/// The number of streams from which sixteen lanes, some of them idle, are used where they are.
constexpr std::size_t kLanesWorth = 12;

/// The least seconds of a few calls: the first wakes units of the processor that slept.
template <typename Call>
double LeastSeconds(const Call& call) {
  double least = 1;
  for (int i = 0; i < 5; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
    least = std::min(least, taken.count());
  }
  return least;
}

/// Whether sixteen lanes are faster here than pairs, even when only kLanesWorth of them are busy:
/// processors that have both differ in which is faster.
bool MeasureLanes() {
  if (!HasShaInstructions() || !HasSixteenShaLanes()) return false;
  constexpr std::size_t kBlocks = 128, kBytes = kBlocks * kSha256BlockBytes;
  const std::vector<std::byte> bytes(kLanes * kBytes);  // more than the first-level cache holds
  const std::byte* at[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) at[i] = bytes.data() + i * kBytes;
  const double in_lanes = LeastSeconds([&] {
    Sha256SixteenWords words{};
    Sha256BlocksOfSixteen(words, at, kBlocks);
  });
  const double in_pairs = LeastSeconds([&] {
    Sha256Words a = kSha256Start, b = kSha256Start;
    for (std::size_t i = 0; i < kLanes; i += 2) Sha256BlocksOfTwo(a, at[i], b, at[i + 1], kBlocks);
  });
  return in_lanes * kLanes < in_pairs * kLanesWorth;
}

bool HasFastLanes() {
  static const bool has = MeasureLanes();
  return has;
}

/// Returns the next rows of an item; no bytes after the last ones.
using NextRows = std::function<ByteRows(std::size_t item)>;

/// One item on its way. Blocks that span rows, and the padding, are put together in `staged_`.
class Stream {
 public:
  /// `next` outlives the stream.
  Stream(const NextRows& next, std::size_t index) : next_(&next), index_(index) { Prepare(); }

  std::size_t index() const { return index_; }
  Sha256Words& words() { return words_; }
  const std::byte* at() const { return staged_blocks_ > 0 ? staged_ + staged_offset_ : RowAt(); }
  /// Whole blocks that lie at `at()` in one piece; 0 when the digest is complete.
  std::size_t blocks() const {
    if (staged_blocks_ > 0) return staged_blocks_;
    return row_ < rows_.rows ? (rows_.row_bytes - offset_) / kSha256BlockBytes : 0;
  }

  void Advance(std::size_t blocks) {
    const std::size_t bytes = blocks * kSha256BlockBytes;
    if (staged_blocks_ > 0) {
      staged_offset_ += bytes;
      staged_blocks_ -= blocks;
    } else {
      offset_ += bytes;
      total_bytes_ += bytes;
    }
    if (staged_blocks_ == 0 && !is_padded_) Prepare();
  }

  Digest Finish() const {
    Digest digest;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint32_t big_endian = __builtin_bswap32(words_[i]);
      std::memcpy(digest.bytes.data() + 4 * i, &big_endian, 4);
    }
    return digest;
  }

 private:
  const std::byte* RowAt() const {
    return rows_.first + static_cast<std::int64_t>(row_) * rows_.stride_bytes + offset_;
  }

  /// Goes on to bytes that were not taken yet. False at the end of the item.
  bool FindBytes() {
    if (row_ < rows_.rows && offset_ == rows_.row_bytes) {
      offset_ = 0;
      ++row_;
    }
    if (row_ < rows_.rows) return true;
    rows_ = (*next_)(index_);
    row_ = offset_ = 0;
    if (rows_.row_bytes == 0) rows_.rows = 0;
    return rows_.rows > 0;
  }

  /// Stages the next block unless it lies in one piece.
  void Prepare() {
    std::size_t filled = 0;
    while (filled < kSha256BlockBytes && FindBytes()) {
      const std::size_t left = rows_.row_bytes - offset_;
      if (filled == 0 && left >= kSha256BlockBytes) return;
      const std::size_t take = std::min(kSha256BlockBytes - filled, left);
      std::memcpy(staged_ + filled, RowAt(), take);
      filled += take;
      offset_ += take;
    }
    total_bytes_ += filled;
    staged_offset_ = 0;
    staged_blocks_ = 1;
    if (filled < kSha256BlockBytes) Pad(filled);
  }

  void Pad(std::size_t filled) {
    is_padded_ = true;
    staged_blocks_ = filled + 9 > kSha256BlockBytes ? 2 : 1;
    const std::size_t size = staged_blocks_ * kSha256BlockBytes;
    std::memset(staged_ + filled, 0, size - filled);
    staged_[filled] = std::byte{0x80};
    const std::uint64_t bits = __builtin_bswap64(8 * total_bytes_);
    std::memcpy(staged_ + size - 8, &bits, 8);
  }

  const NextRows* next_;
  std::size_t index_;
  Sha256Words words_ = kSha256Start;
  ByteRows rows_{nullptr, 0, 0, 0};
  std::size_t row_ = 0, offset_ = 0;
  std::uint64_t total_bytes_ = 0;
  std::byte staged_[2 * kSha256BlockBytes];
  std::size_t staged_offset_ = 0, staged_blocks_ = 0;
  bool is_padded_ = false;
};

/// One run of each stream (at most sixteen), as long as the shortest.
void StepSixteen(std::vector<Stream>& streams) {
  Sha256SixteenWords words;
  const std::byte* at[kLanes];
  std::size_t blocks = SIZE_MAX;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    Stream& stream = streams[lane < streams.size() ? lane : 0];
    for (std::size_t i = 0; i < 8; ++i) words.words[i][lane] = stream.words()[i];
    at[lane] = stream.at();
    blocks = std::min(blocks, stream.blocks());
  }
  Sha256BlocksOfSixteen(words, at, blocks);
  for (std::size_t lane = 0; lane < streams.size(); ++lane) {
    for (std::size_t i = 0; i < 8; ++i) streams[lane].words()[i] = words.words[i][lane];
    streams[lane].Advance(blocks);
  }
}

void StepPairs(std::vector<Stream>& streams) {
  for (std::size_t i = 0; i + 1 < streams.size(); i += 2) {
    Stream &a = streams[i], &b = streams[i + 1];
    const std::size_t blocks = std::min(a.blocks(), b.blocks());
    Sha256BlocksOfTwo(a.words(), a.at(), b.words(), b.at(), blocks);
    a.Advance(blocks);
    b.Advance(blocks);
  }
  if (streams.size() % 2 == 0) return;
  Stream& last = streams.back();
  const std::size_t blocks = last.blocks();
  Sha256Blocks(last.words(), last.at(), blocks);
  last.Advance(blocks);
}

void SideBySide(std::size_t items, const NextRows& next, std::size_t room,
                std::vector<Digest>& digests) {
  std::vector<Stream> streams;
  for (std::size_t begun = 0; begun < items || !streams.empty();) {
    for (; streams.size() < room && begun < items; ++begun) streams.emplace_back(next, begun);
    streams.size() >= kLanesWorth ? StepSixteen(streams) : StepPairs(streams);
    std::erase_if(streams, [&](const Stream& stream) {
      if (stream.blocks() > 0) return false;
      digests[stream.index()] = stream.Finish();
      return true;
    });
  }
}

Digest OneByOne(std::size_t item, const NextRows& next) {
  Sha256 hash;
  for (ByteRows rows = next(item); rows.row_bytes > 0 && rows.rows > 0; rows = next(item)) {
    for (std::size_t row = 0; row < rows.rows; ++row) {
      hash.Update(std::span(rows.first + static_cast<std::int64_t>(row) * rows.stride_bytes,
                            rows.row_bytes));
    }
  }
  return hash.Finish();
}

std::vector<Digest> OfEach(std::size_t items, const NextRows& next, std::size_t side_by_side) {
  std::vector<Digest> digests(items);
  if (HasShaInstructions()) {
    SideBySide(items, next, side_by_side, digests);
  } else {
    for (std::size_t i = 0; i < items; ++i) digests[i] = OneByOne(i, next);
  }
  return digests;
}

/// Few items are no reason to measure.
std::size_t SideBySideOf(std::size_t items) { return items < kLanesWorth ? 2 : Sha256SideBySide(); }

}  // namespace

std::size_t Sha256SideBySide() { return HasFastLanes() ? kLanes : 2; }

std::vector<Digest> Sha256OfEach(std::span<const ByteRows> items) {
  return Sha256OfEach(items, SideBySideOf(items.size()));
}

std::vector<Digest> Sha256OfEach(std::span<const ByteRows> items, std::size_t side_by_side) {
  std::vector<bool> given(items.size());
  const auto next = [&](std::size_t item) {
    if (given[item]) return ByteRows{};
    given[item] = true;
    return items[item];
  };
  return OfEach(items.size(), next, side_by_side);
}

StatusOr<std::vector<Digest>> Sha256OfEach(std::size_t items, const NextBytes& next) {
  Status status;
  const auto next_rows = [&](std::size_t item) -> ByteRows {
    if (!status.ok()) return {};
    const auto bytes = next(item);
    if (bytes.ok()) return {bytes->data(), bytes->size()};
    status = bytes.status();
    return {};
  };
  std::vector<Digest> digests = OfEach(items, next_rows, SideBySideOf(items));
  PB_RETURN_IF_ERROR(status);
  return digests;
}

}  // namespace patchbay
