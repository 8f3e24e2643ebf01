#include "workers/jobs/ingest/check.h"

#include <algorithm>
#include <tuple>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxRecordBytes = 16u << 20, kMaxColoursBytes = 64u << 20;
/// Bytes of each file hashed at a time; a multiple of the hash's block. Larger means fewer reads,
/// but more than the cache holds.
constexpr std::size_t kReadBytes = 64u << 10;

/// A shard's file on its way through the hash.
struct OpenShard {
  std::string path;
  UniqueFd fd;
  std::uint64_t at = 0, size_bytes = 0;
  std::vector<std::byte> block;
};

std::string PathOf(const IngestSlide& slide, const zarr::ShardRecord& record) {
  return StrCat(slide.Store(), "/", zarr::ShardFileName(record.place));
}

Status NotAsCommitted(const std::string& path) {
  return ErrorAbout(absl::StatusCode::kDataLoss, "check shard", path,
                    "the file differs from what its task committed");
}

/// Reads every file whole. DataLoss unless each has the size and the SHA-256 of its record.
Status CheckFiles(TaskContext& context, const IngestSlide& slide,
                  std::span<const zarr::ShardRecord> records) {
  std::vector<OpenShard> shards;
  std::vector<Digest> expected;
  for (const zarr::ShardRecord& record : records) {
    if (record.size_bytes == 0) continue;
    OpenShard shard;
    shard.path = PathOf(slide, record);
    shard.size_bytes = record.size_bytes;
    PB_ASSIGN_OR_RETURN(shard.fd, OpenFile(context.allowed, shard.path, O_RDONLY));
    shard.block.resize(kReadBytes);
    shards.push_back(std::move(shard));
    expected.push_back(record.digest);
  }
  const auto next = [&](std::size_t i) -> StatusOr<std::span<const std::byte>> {
    OpenShard& shard = shards[i];
    PB_RETURN_IF_ERROR(StepOf(context));
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

/// Reads the record of a shard: its text and its value.
StatusOr<std::pair<std::string, RecordText>> ReadRecord(const IngestSlide& slide,
                                                        const zarr::ShardPlace& place) {
  const std::string path = slide.Record(RecordName(place));
  PB_ASSIGN_OR_RETURN(std::string text, ReadFile(slide.folders.allowed, path, kMaxRecordBytes));
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "shard record"));
  PB_ASSIGN_OR_RETURN(auto record, FromJson<RecordText>(json, "shard record"));
  if (record.shard.place != place) {
    return ErrorAbout(absl::StatusCode::kDataLoss, "check shard", path,
                      "the record is of another shard");
  }
  return std::pair(std::move(text), std::move(record));
}

/// Inode and times of change of a shard's file.
struct FileStamp {
  std::string text;    ///< while it stays, the file was neither written nor replaced
  timespec changed{};  ///< the last of the times; zero for a record without a file
};

/// DataLoss when the file's size differs from the record.
StatusOr<FileStamp> StampOf(const Folders& allowed, const std::string& path,
                            const zarr::ShardRecord& record) {
  if (record.size_bytes == 0) return FileStamp{"none", {}};
  // Opening makes network file systems ask the server, where stat may answer from memory.
  PB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(allowed, path, O_RDONLY));
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return FromErrno("stat", path, errno);
  if (static_cast<std::uint64_t>(st.st_size) != record.size_bytes) return NotAsCommitted(path);
  return FileStamp{StrCat(st.st_ino, " ", st.st_mtim.tv_sec, ".", st.st_mtim.tv_nsec, " ",
                          st.st_ctim.tv_sec, ".", st.st_ctim.tv_nsec),
                   st.st_ctim};
}

/// The time by the clock of the staging folder's file system. A file with an older change time
/// cannot be written again and keep its stamp; one changed within this tick can.
StatusOr<timespec> FileSystemTime(const TaskContext& context, const std::string& staging) {
  const std::string path = StrCat(staging, "/", context.lease.incarnation, "-",
                                  context.lease.counter, "-", Hex64(RandomU64()), ".time");
  PB_ASSIGN_OR_RETURN(const UniqueFd fd,
                      OpenFile(context.allowed, path, O_WRONLY | O_CREAT | O_EXCL, 0600));
  struct stat st {};
  const int failed = fstat(fd.get(), &st) == 0 ? 0 : errno;
  RemoveFile(context.allowed, path).IgnoreError();
  if (failed != 0) return FromErrno("stat", path, failed);
  return st.st_ctim;
}

bool IsBefore(const timespec& a, const timespec& b) {
  return std::tie(a.tv_sec, a.tv_nsec) < std::tie(b.tv_sec, b.tv_nsec);
}

/// The shards are not read soon, and a slide is larger than the free memory: dropping their pages
/// makes room for the next shards without evicting the cache of others. Only a hint.
void DropFromCache(const IngestSlide& slide, const std::vector<zarr::ShardRecord>& records) {
  for (const zarr::ShardRecord& record : records) {
    const auto fd = OpenFile(slide.folders.allowed, PathOf(slide, record), O_RDONLY);
    if (fd.ok()) posix_fadvise(fd->get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

/// The SHA-256 of each record's text, as the tasks that made the shards reported it.
StatusOr<std::vector<Digest>> ReportedRecords(const TaskContext& context) {
  std::vector<Digest> records;
  for (const std::string& input : context.inputs) {
    PB_ASSIGN_OR_RETURN(const Json json, ParseJson(input, "shard result"));
    PB_ASSIGN_OR_RETURN(const MadeShards made, FromJson<MadeShards>(json, "shard result"));
    records.insert(records.end(), made.records.begin(), made.records.end());
  }
  return records;
}

Status NotAsReported(const zarr::ShardPlace& place) {
  return DataLoss("check shard: ", RecordName(place),
                  ": the record differs from what its task reported");
}

}  // namespace

StatusOr<std::optional<Digest>> AdoptShard(TaskContext& context, const IngestSlide& slide,
                                           const zarr::ShardPlace& place) {
  const std::optional<Digest> none;
  const auto read = ReadRecord(slide, place);
  if (!read.ok()) return none;
  const auto& [text, record] = *read;
  const Status checked = CheckFiles(context, slide, std::span(&record.shard, 1));
  if (absl::IsCancelled(checked)) return checked;
  if (!checked.ok() || !ReadColours(slide, place).ok()) return none;
  return std::optional(Sha256Of(text));
}

StatusOr<std::optional<ops::StainHistogram>> ReadColours(const IngestSlide& slide,
                                                         const zarr::ShardPlace& place) {
  std::optional<ops::StainHistogram> colours;
  if (place.level != 0 || !HasColours(slide)) return colours;
  PB_ASSIGN_OR_RETURN(const auto record, ReadRecord(slide, place));
  const std::string path = slide.Colours(RecordName(place));
  PB_ASSIGN_OR_RETURN(const std::string bytes,
                      ReadFile(slide.folders.allowed, path, kMaxColoursBytes));
  if (record.second.colours != Sha256Of(bytes)) return NotAsCommitted(path);
  PB_ASSIGN_OR_RETURN(colours, ops::ParseHistogram(bytes));
  return colours;
}

StatusOr<StagedShards> ConfirmShards(TaskContext& context, const IngestSlide& slide,
                                     const std::vector<CheckedShard>& checked) {
  const std::vector<zarr::ShardPlace> places = ShardPlaces(slide);
  if (checked.size() != places.size()) {
    return Internal("confirm shards: ", checked.size(), " checked of ", places.size(),
                    " zarr shards");
  }
  StagedShards staged;
  std::vector<zarr::ShardRecord> touched;
  for (std::size_t i = 0; i < places.size(); ++i) {
    PB_ASSIGN_OR_RETURN(auto read, ReadRecord(slide, places[i]));
    if (Sha256Of(read.first) != checked[i].record) return NotAsReported(places[i]);
    if (places[i].level == 0) staged.absent_pieces += read.second.absent_pieces;
    zarr::ShardRecord& record = read.second.shard;
    PB_ASSIGN_OR_RETURN(const FileStamp stamp,
                        StampOf(context.allowed, PathOf(slide, record), record));
    // An expired lease repeated its commit, or another program wrote here.
    if (stamp.text != checked[i].stamp) touched.push_back(record);
    staged.records.push_back(std::move(record));
    context.AddProgress();
  }
  for (std::size_t i = 0; i < touched.size(); i += kShardsPerCheck) {
    const std::size_t count = std::min(kShardsPerCheck, touched.size() - i);
    PB_RETURN_IF_ERROR(CheckFiles(context, slide, std::span(touched).subspan(i, count)));
  }
  return staged;
}

StatusOr<TaskOutput> RunIngestCheck(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const ShardRequest request, OpenShardRequest(context));
  PB_ASSIGN_OR_RETURN(const std::vector<Digest> reported, ReportedRecords(context));
  if (reported.size() != request.places.size()) {
    return Internal("check shards: ", reported.size(), " results for ", request.places.size(),
                    " zarr shards");
  }
  CheckedShards checked;
  std::vector<zarr::ShardRecord> records;
  PB_ASSIGN_OR_RETURN(const timespec now, FileSystemTime(context, request.slide.Staging()));
  for (std::size_t i = 0; i < reported.size(); ++i) {
    PB_ASSIGN_OR_RETURN(auto read, ReadRecord(request.slide, request.places[i]));
    zarr::ShardRecord& record = read.second.shard;
    if (Sha256Of(read.first) != reported[i]) return NotAsReported(request.places[i]);
    // Before the file is read: a change in between changes the stamp.
    PB_ASSIGN_OR_RETURN(const FileStamp stamp,
                        StampOf(context.allowed, PathOf(request.slide, record), record));
    const bool is_settled = IsBefore(stamp.changed, now);
    checked.shards.push_back({reported[i], is_settled ? stamp.text : "unsettled"});
    records.push_back(std::move(record));
    context.AddProgress();
  }
  PB_RETURN_IF_ERROR(CheckFiles(context, request.slide, records));
  DropFromCache(request.slide, records);
  TaskOutput output;
  output.result = DumpJson(JsonOf(checked));
  return output;
}

}  // namespace patchbay::workers
