// A shard piece as a file: a head, a row for each chunk, the chunks, a checksum.
#include <cstring>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/shard_encoder.h"

namespace patchbay::zarr {
namespace {

constexpr std::uint64_t kMagic = 0x3243454950425000;  // "\0PBPIEC2"

struct PieceHead {
  std::uint64_t magic = kMagic;
  std::int64_t level = 0;
  std::int64_t first[3] = {}, grid[3] = {};  ///< z, y, x
};

template <typename T>
void Put(std::vector<std::byte>& out, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Status RefusePiece(const char* cause) { return DataLoss("read shard piece: ", cause); }

}  // namespace

std::vector<std::byte> SerialisePiece(const ShardPiece& piece) {
  std::vector<std::byte> out;
  out.reserve(sizeof(PieceHead) + piece.chunks.size() * sizeof(EncodedChunk) + piece.bytes.size() +
              4);
  Put(out, PieceHead{kMagic,
                     piece.level,
                     {piece.first.z, piece.first.y, piece.first.x},
                     {piece.grid.z, piece.grid.y, piece.grid.x}});
  for (const EncodedChunk& chunk : piece.chunks) Put(out, chunk);
  out.insert(out.end(), piece.bytes.begin(), piece.bytes.end());
  Put(out, Crc32c(out));
  return out;
}

StatusOr<ShardPiece> ParsePiece(std::span<const std::byte> bytes) {
  static_assert(sizeof(EncodedChunk) == 48, "the layout of a file");
  PieceHead head;
  std::uint32_t stored = 0;
  if (bytes.size() < sizeof head + sizeof stored) return RefusePiece("too short");
  std::memcpy(&head, bytes.data(), sizeof head);
  const auto checked = bytes.first(bytes.size() - sizeof stored);
  std::memcpy(&stored, bytes.data() + checked.size(), sizeof stored);
  if (head.magic != kMagic || Crc32c(checked) != stored) return RefusePiece("crc32c mismatch");
  bool is_sane = head.level >= 0 && head.level < 1000;
  // Chunks that may still follow along the axes not looked at yet.
  std::size_t room = (checked.size() - sizeof head) / sizeof(EncodedChunk);
  for (int i = 0; i < 3; ++i) {
    is_sane = is_sane && head.first[i] >= 0 && head.first[i] < kMaxLevelSide && head.grid[i] > 0 &&
              static_cast<std::uint64_t>(head.grid[i]) <= room;
    if (is_sane) room /= static_cast<std::size_t>(head.grid[i]);
  }
  if (!is_sane) return RefusePiece("a value is out of range");
  ShardPiece piece;
  piece.level = static_cast<int>(head.level);
  piece.first = {head.first[0], head.first[1], head.first[2]};
  piece.grid = {head.grid[0], head.grid[1], head.grid[2]};
  piece.chunks.resize(static_cast<std::size_t>(piece.grid.Pixels()));
  const std::size_t table_bytes = piece.chunks.size() * sizeof(EncodedChunk);
  std::memcpy(piece.chunks.data(), checked.data() + sizeof head, table_bytes);
  const auto rest = checked.subspan(sizeof head + table_bytes);
  for (const EncodedChunk& chunk : piece.chunks) {
    if (chunk.offset > rest.size() || chunk.size_bytes > rest.size() - chunk.offset) {
      return RefusePiece("a chunk lies past the end");
    }
  }
  piece.bytes.assign(rest.begin(), rest.end());
  return piece;
}

}  // namespace patchbay::zarr
