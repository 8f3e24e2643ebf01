#include "workers/jobs/ingest_check.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "workers/jobs/ingest.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxRecordBytes = 16u << 20;
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
  return absl::DataLossError(StrCat("check: ", path, ": the file is not what its task committed"));
}

StatusOr<TaskOutput> Check(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const IngestSlide slide, OpenIngestSlide(context));
  constexpr std::string_view kWhat = "ingest payload";
  PB_ASSIGN_OR_RETURN(const std::string slide_key, JsonString(context.payload, "slide_key", kWhat));
  PB_ASSIGN_OR_RETURN(const std::int64_t first, JsonInt(context.payload, "first", kWhat));
  const std::vector<zarr::ShardPlace> places = ShardPlaces(slide);
  if (first < 0 || first >= static_cast<std::int64_t>(places.size())) {
    return absl::InvalidArgumentError(StrCat(kWhat, ": first: ", first, " is not a zarr shard"));
  }
  PB_ASSIGN_OR_RETURN(const StagedRecords staged,
                      ReadRecords(slide, slide_key, places, static_cast<std::size_t>(first)));
  if (context.inputs.size() != staged.records.size()) {
    return absl::InternalError(StrCat("check: ", context.inputs.size(), " results for ",
                                      staged.records.size(), " zarr shards"));
  }
  for (std::size_t i = 0; i < staged.records.size(); ++i) {
    PB_ASSIGN_OR_RETURN(const Json result, ParseJson(context.inputs[i], "shard result"));
    if (result.value("record", "") != staged.texts[i].Hex()) {
      return absl::DataLossError(StrCat("check: zarr shard ", RecordName(staged.records[i].place),
                                        ": the record is not what its task reported"));
    }
  }
  // Before the files are read: what changes meanwhile, changes the stamp.
  PB_ASSIGN_OR_RETURN(const Digest stamps, StampFiles(slide, slide_key, staged.records));
  PB_RETURN_IF_ERROR(CheckFiles(context, slide, slide_key, staged.records));
  TaskOutput output;
  output.result = DumpJson({{"records", staged.Name().Hex()}, {"stamps", stamps.Hex()}});
  return output;
}

}  // namespace

Digest StagedRecords::Name() const {
  Sha256 hash;
  for (const Digest& text : texts) hash.Update(text.Hex());
  return hash.Finish();
}

StatusOr<StagedRecords> ReadRecords(const IngestSlide& slide, const std::string& slide_key,
                                    const std::vector<zarr::ShardPlace>& places,
                                    std::size_t first) {
  StagedRecords staged;
  for (std::size_t i = first; i < std::min(first + kShardsPerCheck, places.size()); ++i) {
    PB_ASSIGN_OR_RETURN(
        const std::string text,
        ReadFile(slide.folders.Record(slide_key, RecordName(places[i])), kMaxRecordBytes));
    PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, "shard record"));
    PB_ASSIGN_OR_RETURN(zarr::ShardRecord record, zarr::ShardRecordFromJson(json));
    if (record.place != places[i]) {
      return absl::DataLossError(
          StrCat("check: zarr shard ", RecordName(places[i]), ": the record is of another"));
    }
    if (places[i].level == 0) staged.absent_pieces += json.value("absent_pieces", std::uint64_t{0});
    staged.records.push_back(std::move(record));
    staged.texts.push_back(Sha256Of(text));
  }
  return staged;
}

Status CheckFiles(TaskContext& context, const IngestSlide& slide, const std::string& slide_key,
                  const std::vector<zarr::ShardRecord>& records) {
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

StatusOr<Digest> StampFiles(const IngestSlide& slide, const std::string& slide_key,
                            const std::vector<zarr::ShardRecord>& records) {
  Sha256 hash;
  for (const zarr::ShardRecord& record : records) {
    if (record.size_bytes == 0) continue;
    const std::string path = PathOf(slide, slide_key, record);
    struct stat st {};
    if (stat(path.c_str(), &st) != 0) return FromErrno("stat", path, errno);
    if (static_cast<std::uint64_t>(st.st_size) != record.size_bytes) return NotAsCommitted(path);
    hash.Update(StrCat(st.st_ino, " ", st.st_size, " ", st.st_mtim.tv_sec, ".", st.st_mtim.tv_nsec,
                       " ", st.st_ctim.tv_sec, ".", st.st_ctim.tv_nsec, "\n"));
  }
  return hash.Finish();
}

StatusOr<TaskOutput> RunIngestCheck(TaskContext& context) {
  return WithoutPaths(context, Check(context));
}

}  // namespace patchbay::workers
