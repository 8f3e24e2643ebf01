#include "workers/jobs/ingest_check.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxRecordBytes = 16u << 20;
/// Files read and hashed side by side.
constexpr std::size_t kFilesAtOnce = 16;
/// Of each file at a time; a multiple of a hash's block. Larger means fewer reads and less in
/// cache.
constexpr std::size_t kReadBytes = 64u << 10;

/// A shard's file on its way through the hash.
struct OpenShard {
  std::string path;
  UniqueFd fd;
  std::uint64_t at = 0, size_bytes = 0;
  std::vector<std::byte> block;
};

std::string PathOf(const IngestSlide& slide, const std::string& slide_key,
                   const zarr::ShardRecord& record) {
  return StrCat(slide.folders.Store(slide_key), "/", zarr::ShardFileName(record.place));
}

Status NotAsCommitted(const std::string& path) {
  return absl::DataLossError(
      StrCat("check shard: ", path, ": the file is not what its task committed"));
}

/// Reads every file whole. DataLoss unless each has the size and the SHA-256 of its record.
Status CheckFiles(TaskContext& context, const IngestSlide& slide, const std::string& slide_key,
                  std::span<const zarr::ShardRecord> records) {
  std::vector<OpenShard> shards;
  std::vector<Digest> expected;
  for (const zarr::ShardRecord& record : records) {
    if (record.size_bytes == 0) continue;
    OpenShard shard;
    shard.path = PathOf(slide, slide_key, record);
    shard.size_bytes = record.size_bytes;
    PB_ASSIGN_OR_RETURN(shard.fd, OpenFile(shard.path, O_RDONLY));
    shard.block.resize(kReadBytes);
    shards.push_back(std::move(shard));
    expected.push_back(record.digest);
  }
  const auto next = [&](std::size_t i) -> StatusOr<std::span<const std::byte>> {
    OpenShard& shard = shards[i];
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    context.AddProgress();
    const auto part = std::span(shard.block)
                          .first(static_cast<std::size_t>(
                              std::min<std::uint64_t>(kReadBytes, shard.size_bytes - shard.at)));
    PB_RETURN_IF_ERROR(ReadAt(shard.fd.get(), shard.at, part, shard.path));
    shard.at += part.size();
    return std::span<const std::byte>(part);
  };
  PB_ASSIGN_OR_RETURN(const std::vector<Digest> digests, Sha256OfEach(shards.size(), next));
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (digests[i] != expected[i]) return NotAsCommitted(shards[i].path);
  }
  return absl::OkStatus();
}

/// A record's text and value, of the place it is named after.
StatusOr<std::pair<std::string, zarr::ShardRecord>> ReadRecord(const IngestSlide& slide,
                                                               const std::string& slide_key,
                                                               const zarr::ShardPlace& place,
                                                               std::uint64_t& absent_pieces) {
  const std::string path = slide.folders.Record(slide_key, RecordName(place));
  PB_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxRecordBytes));
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "shard record"));
  PB_ASSIGN_OR_RETURN(zarr::ShardRecord record, zarr::ShardRecordFromJson(json));
  if (record.place != place) {
    return absl::DataLossError(StrCat("check shard: ", path, ": the record is of another shard"));
  }
  if (place.level == 0) absent_pieces += json.value("absent_pieces", std::uint64_t{0});
  return std::pair(std::move(text), std::move(record));
}

}  // namespace

Json ToJson(const CommittedShard& shard) {
  return {{"record", shard.record.Hex()}, {"stamp", shard.stamp}};
}

StatusOr<CommittedShard> CommittedShardFromJson(const Json& value) {
  CommittedShard shard;
  PB_ASSIGN_OR_RETURN(const std::string record, JsonString(value, "record", "shard result"));
  PB_ASSIGN_OR_RETURN(shard.record, Digest::FromHex(record));
  PB_ASSIGN_OR_RETURN(shard.stamp, JsonString(value, "stamp", "shard result"));
  return shard;
}

StatusOr<std::string> StampOf(const std::string& path, const zarr::ShardRecord& record) {
  if (record.size_bytes == 0) return std::string("none");
  // Opening makes network file systems ask the server, where stat may answer from memory.
  PB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path, O_RDONLY));
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return FromErrno("stat", path, errno);
  if (static_cast<std::uint64_t>(st.st_size) != record.size_bytes) return NotAsCommitted(path);
  return StrCat(st.st_ino, " ", st.st_mtim.tv_sec, ".", st.st_mtim.tv_nsec, " ", st.st_ctim.tv_sec,
                ".", st.st_ctim.tv_nsec);
}

std::string StampAfterRename(const std::string& before, const std::string& after) {
  // A rename touches only the time of the last field.
  const bool is_same = before.substr(0, before.rfind(' ')) == after.substr(0, after.rfind(' '));
  return is_same ? after : "unknown";
}

StatusOr<std::optional<CommittedShard>> AdoptShard(TaskContext& context, const IngestSlide& slide,
                                                   const std::string& slide_key,
                                                   const zarr::ShardPlace& place) {
  const std::optional<CommittedShard> none;
  std::uint64_t absent_pieces = 0;
  const auto read = ReadRecord(slide, slide_key, place, absent_pieces);
  if (!read.ok()) return none;
  const auto& [text, record] = *read;
  // Before the file is read: what changes meanwhile changes the stamp.
  const auto stamp = StampOf(PathOf(slide, slide_key, record), record);
  if (!stamp.ok()) return none;
  const Status checked = CheckFiles(context, slide, slide_key, std::span(&record, 1));
  if (absl::IsCancelled(checked)) return checked;
  if (!checked.ok()) return none;
  return std::optional(CommittedShard{Sha256Of(text), *stamp});
}

StatusOr<CheckedShards> CheckShards(TaskContext& context, const IngestSlide& slide,
                                    const std::string& slide_key,
                                    const std::vector<CommittedShard>& committed) {
  const std::vector<zarr::ShardPlace> places = ShardPlaces(slide);
  if (committed.size() != places.size()) {
    return absl::InternalError(
        StrCat("check shards: ", committed.size(), " results for ", places.size(), " zarr shards"));
  }
  CheckedShards checked;
  std::vector<zarr::ShardRecord> touched;
  for (std::size_t i = 0; i < places.size(); ++i) {
    PB_ASSIGN_OR_RETURN(auto read, ReadRecord(slide, slide_key, places[i], checked.absent_pieces));
    auto& [text, record] = read;
    if (Sha256Of(text) != committed[i].record) {
      return absl::DataLossError(StrCat("check shards: ", RecordName(places[i]),
                                        ": the record is not what its task reported"));
    }
    PB_ASSIGN_OR_RETURN(const std::string stamp, StampOf(PathOf(slide, slide_key, record), record));
    // A lease that had lost its right repeated its commit, or somebody wrote here.
    if (stamp != committed[i].stamp) touched.push_back(record);
    checked.records.push_back(std::move(record));
    context.AddProgress();
  }
  for (std::size_t i = 0; i < touched.size(); i += kFilesAtOnce) {
    const std::size_t count = std::min(kFilesAtOnce, touched.size() - i);
    PB_RETURN_IF_ERROR(CheckFiles(context, slide, slide_key, std::span(touched).subspan(i, count)));
  }
  return checked;
}

}  // namespace patchbay::workers
