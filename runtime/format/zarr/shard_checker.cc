#include "runtime/format/zarr/shard_checker.h"

#include <algorithm>
#include <optional>

#include "runtime/core/box.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/shard_index.h"
#include "runtime/format/zarr/shard_list.h"
#include "runtime/format/zarr/store_tree.h"
#include "runtime/os/file.h"

namespace patchbay::zarr {
namespace {

/// "0/c/0/1/2 chunk (0,3,1): cause" from a status of the reader.
std::string FaultText(const OpenedStore& store, const Status& status) {
  std::string text(MessageOf(status));
  if (const auto at = text.find(store.path + "/"); at != std::string::npos) {
    text.erase(0, at + store.path.size() + 1);
  }
  return text;
}

/// Nothing larger is read: no number in a file decides how long a check takes.
std::uint64_t MaxShardBytes(const ArrayMetadata& array) {
  return static_cast<std::uint64_t>(array.ChunksPerShard()) * MaxEncodedBytes(array) +
         IndexBytes(array) + kSealBytes;
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
  const auto file = files_.Open(name);
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

bool ShardChecker::CheckFile(const StoredBytes& file, const std::string& name,
                             ShardFindings& out) const {
  out.size_bytes = file.size_bytes();
  const ArrayMetadata& array = store_.At(out.place).array.metadata();
  if (const std::uint64_t most = MaxShardBytes(array); file.size_bytes() > most) {
    out.bad.push_back(StrCat(name, ": ", file.size_bytes(),
                             " bytes, and a shard of this array has ", most, " at most"));
    return false;
  }
  const auto index = ReadIndex(array, file, {.name = StrCat(store_.path, "/", name)});
  if (!index.ok()) {
    out.bad.push_back(FaultText(store_, index.status()));
    return false;
  }
  const auto digest = DigestOf(file, StrCat(store_.path, "/", name));
  if (!digest.ok()) {
    out.bad.push_back(FaultText(store_, digest.status()));
    return false;
  }
  out.digest = *digest;
  if (const auto overlap = Overlap(*index)) out.bad.push_back(StrCat(name, ": ", *overlap));
  return true;
}

void ShardChecker::CheckChunks(ShardFindings& out) {
  const OpenedLevel& level = store_.At(out.place);
  const Extent per_shard = store_.settings.ChunksPerShard();
  const Point& shard = out.place.at;
  const Box chunks = Intersect(
      BoxAt({shard.z * per_shard.z, shard.y * per_shard.y, shard.x * per_shard.x}, per_shard),
      WholeOf(ChunkGridOf(store_.settings, level.size)));
  for (std::int64_t i = 0; i < chunks.Pixels(); ++i) {
    const Point cell = CellAt(chunks.Shape(), i);
    const auto digest =
        CheckChunk(level, {chunks.z + cell.z, chunks.y + cell.y, chunks.x + cell.x});
    if (!digest.ok()) out.bad.push_back(FaultText(store_, digest.status()));
    out.chunks.push_back(digest.ok() ? *digest : Digest{});
  }
}

StatusOr<Digest> ShardChecker::CheckChunk(const OpenedLevel& level, const Point& at) {
  const ImageStoreSettings& s = store_.settings;
  const Box box = Intersect(BoxAt({at.z * s.chunk.z, at.y * s.chunk.y, at.x * s.chunk.x}, s.chunk),
                            WholeOf(level.size));
  const auto channels = static_cast<std::int64_t>(s.channels);
  pixels_.resize(static_cast<std::size_t>(box.Pixels() * s.PixelBytes()));
  const TensorView image =
      ContiguousView<4>(pixels_.data(), s.dtype, {box.depth, box.height, box.width, channels});
  PB_ASSIGN_OR_RETURN(const FetchedChunk fetched,
                      level.array.FetchChunk({at.z, at.y, at.x}, encoded_, 0));
  PB_RETURN_IF_ERROR(level.array.DecodeChunk(fetched, std::span(encoded_).first(fetched.size_bytes),
                                             RegionOf(s, box), AlongAxes(s, image), scratch_));
  return hasher_.Hash(image, fetched.absent);
}

void ShardChecker::CheckDigest(const std::string& name, ShardFindings& out) const {
  const auto listed = store_.Listed(out.place);
  if (!out.bad.empty() || !listed || !listed->has_value()) return;
  const std::uint32_t recorded = (*listed)->first_bits, found = FirstBitsOf(out.digest);
  if (found == recorded) return;
  out.bad.push_back(StrCat(name, ": another file than was written: its SHA-256 begins with ",
                           HexOf(found), ", ", HexOf(recorded), " recorded"));
}

}  // namespace patchbay::zarr
