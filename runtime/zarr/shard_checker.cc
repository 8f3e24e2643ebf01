#include "runtime/zarr/shard_checker.h"

#include <algorithm>
#include <optional>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/zarr/shard_index.h"
#include "runtime/zarr/shard_list.h"
#include "runtime/zarr/store_tree.h"

namespace patchbay::zarr {
namespace {

constexpr std::size_t kHashBlockBytes = std::size_t{1} << 20;

/// "0/c/0/1/2 chunk (0,3,1): cause" from a status of the reader.
std::string FaultText(const OpenedStore& store, const Status& status) {
  std::string text(MessageOf(status));
  if (const auto at = text.find(store.path + "/"); at != std::string::npos) {
    text.erase(0, at + store.path.size() + 1);
  }
  return text;
}

StatusOr<Digest> HashFile(const CachedFile& file, const std::string& name) {
  Sha256 hash;
  std::vector<std::byte> block(kHashBlockBytes);
  for (std::uint64_t at = 0; at < file.size_bytes; at += block.size()) {
    const auto part = std::span(block).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), file.size_bytes - at)));
    PB_RETURN_IF_ERROR(ReadAt(file.fd.get(), at, part, name));
    hash.Update(part);
  }
  return hash.Finish();
}

/// Entries that share bytes: each chunk may decode, yet the file is not what a writer made.
std::optional<std::string> Overlap(const ShardIndex& index) {
  std::vector<IndexEntry> stored;
  for (const IndexEntry& entry : index) {
    if (!entry.Absent()) stored.push_back(entry);
  }
  std::sort(stored.begin(), stored.end(),
            [](const IndexEntry& a, const IndexEntry& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < stored.size(); ++i) {
    if (stored[i].offset < stored[i - 1].offset + stored[i - 1].size_bytes) {
      return StrCat("index entries overlap at byte ", stored[i].offset);
    }
  }
  return std::nullopt;
}

}  // namespace

ShardFindings ShardChecker::Check(const ShardPlace& place) {
  ShardFindings out;
  out.place = place;
  const std::string name = store_.FileOf(place);
  if (!CheckPresence(name, out)) return out;
  const auto file = files_.Open(StrCat(store_.path, "/", name));
  if (!file.ok()) {
    out.bad.push_back(FaultText(store_, file.status()));
    return out;
  }
  if (*file == nullptr && out.present) {
    out.bad.push_back(StrCat(name, ": gone while the store was looked at"));
    return out;
  }
  if (*file != nullptr && !CheckFile(**file, name, out)) return out;
  CheckChunks(out);
  CheckDigest(name, out);
  return out;
}

bool ShardChecker::CheckPresence(const std::string& name, ShardFindings& out) const {
  const auto kind = EntryKindOf(StrCat(store_.path, "/", name));
  if (!kind.ok()) {
    out.bad.push_back(FaultText(store_, kind.status()));
    return false;
  }
  out.present = *kind != EntryKind::kNothing;
  if (out.present && *kind != EntryKind::kFile) {
    out.bad.push_back(StrCat(name, ": ", NameOf(*kind), ", not a file"));
    return false;
  }
  const auto listed = store_.Listed(out.place);
  if (!listed) return true;
  out.missing = listed->has_value() && !out.present;
  out.unexpected = !listed->has_value() && out.present;
  if (out.missing) out.bad.push_back(StrCat(name, ": missing"));
  if (out.unexpected) {
    out.bad.push_back(StrCat(name, ": surplus: the store was written without this file"));
  }
  return !out.missing && !out.unexpected;
}

bool ShardChecker::CheckFile(const CachedFile& file, const std::string& name,
                             ShardFindings& out) const {
  out.size_bytes = file.size_bytes;
  const auto digest = HashFile(file, StrCat(store_.path, "/", name));
  if (!digest.ok()) {
    out.bad.push_back(FaultText(store_, digest.status()));
    return false;
  }
  out.digest = *digest;
  const ArrayMetadata& array = store_.At(out.place).array.metadata();
  const auto index = ReadIndex(array, file, StrCat(store_.path, "/", name));
  if (!index.ok()) {
    out.bad.push_back(FaultText(store_, index.status()));
    return false;
  }
  if (const auto overlap = Overlap(*index)) out.bad.push_back(StrCat(name, ": ", *overlap));
  return true;
}

void ShardChecker::CheckChunks(ShardFindings& out) {
  const OpenedLevel& level = store_.At(out.place);
  const ImageStoreSettings& s = store_.settings;
  const LevelSize grid = ChunkGridOf(s, level.size);
  const std::int64_t per_side = s.shard_px / s.chunk_px;
  const std::int64_t top = out.place.row * per_side, left = out.place.column * per_side;
  for (std::int64_t r = top; r < std::min(top + per_side, grid.height); ++r) {
    for (std::int64_t c = left; c < std::min(left + per_side, grid.width); ++c) {
      const auto digest = CheckChunk(level, r, c);
      if (!digest.ok()) out.bad.push_back(FaultText(store_, digest.status()));
      out.chunks.push_back(digest.ok() ? *digest : Digest{});
    }
  }
}

StatusOr<Digest> ShardChecker::CheckChunk(const OpenedLevel& level, std::int64_t row,
                                          std::int64_t column) {
  const ImageStoreSettings& s = store_.settings;
  const std::int64_t height = std::min(s.chunk_px, level.size.height - row * s.chunk_px);
  const std::int64_t width = std::min(s.chunk_px, level.size.width - column * s.chunk_px);
  const auto channels = static_cast<std::int64_t>(s.channels);
  pixels_.resize(static_cast<std::size_t>(height * width * channels) * SizeOf(s.dtype));
  const TensorView image = ContiguousView<3>(pixels_.data(), s.dtype, {height, width, channels});
  TensorView planes = image;
  planes.shape = {channels, height, width};
  planes.stride_bytes = {image.stride_bytes[2], image.stride_bytes[0], image.stride_bytes[1]};
  const Coordinates chunk{0, row, column};
  PB_ASSIGN_OR_RETURN(const FetchedChunk fetched, level.array.FetchChunk(chunk, encoded_, 0));
  const Region region{{0, row * s.chunk_px, column * s.chunk_px}, {channels, height, width}};
  PB_RETURN_IF_ERROR(level.array.DecodeChunk(fetched, std::span(encoded_).first(fetched.size_bytes),
                                             region, planes, scratch_));
  return hasher_.Hash(image, fetched.absent);
}

void ShardChecker::CheckDigest(const std::string& name, ShardFindings& out) const {
  const auto listed = store_.Listed(out.place);
  if (!out.bad.empty() || !listed || !listed->has_value()) return;
  const std::uint32_t recorded = **listed, found = FirstBitsOf(out.digest);
  if (found == recorded) return;
  out.bad.push_back(StrCat(name, ": another file than was written: its SHA-256 begins with ",
                           HexOf(found), ", ", HexOf(recorded), " recorded"));
}

}  // namespace patchbay::zarr
