#include "workers/jobs/ingest/staging.h"

#include <filesystem>
#include <map>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "workers/jobs/path_names.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxManifestBytes = 256u << 20;
constexpr std::size_t kMaxOutcomeBytes = 64u << 10;
/// Raised when the same source and settings would give other bytes, so that nothing old is adopted.
constexpr int kStoreFormat = 1;
constexpr std::string_view kCsvHeader = "store,source,source_sha256,digest,pixel_digest\r\n";

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted.push_back('"');
    quoted.push_back(c);
  }
  return quoted + "\"";
}

/// Rows of an existing manifest by store name. The store name never needs quotes.
std::map<std::string, std::string> ExistingRows(const std::string& text) {
  std::map<std::string, std::string> rows;
  std::size_t begin = text.find('\n');
  begin = begin == std::string::npos ? text.size() : begin + 1;
  bool quoted = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == '\n' && !quoted) {
      const std::string row = text.substr(begin, i + 1 - begin);
      rows[row.substr(0, row.find(','))] = row;
      begin = i + 1;
    }
  }
  return rows;
}

/// What a message of this task may hold, and what it says instead.
PathNames NamesOf(const TaskContext& context) {
  PathNames names;
  const auto folders = FoldersOf(context);
  const Json slide = context.payload.value("slide", Json());
  if (folders.ok() && slide.is_number_unsigned()) {
    const auto manifest = LoadManifest(*folders);
    if (manifest.ok() && slide.get<std::size_t>() < manifest->sources.size()) {
      names.AddImage(manifest->sources[slide.get<std::size_t>()],
                     StrCat("slide ", slide.get<std::size_t>()));
    }
  }
  names.AddManifest(context.manifest);
  return names;
}

}  // namespace

StatusOr<TaskOutput> WithoutPaths(const TaskContext& context, StatusOr<TaskOutput> output) {
  if (output.ok()) return output;
  return NamesOf(context).Hide(output.status());
}

StatusOr<IngestFolders> FoldersOf(const TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const std::string out,
                      JsonString(context.manifest, "out", "ingest manifest"));
  IngestFolders folders;
  PB_ASSIGN_OR_RETURN(folders.out, context.MayWrite(out));
  if (context.payload.contains("job_key")) {
    PB_ASSIGN_OR_RETURN(folders.job_key, JsonString(context.payload, "job_key", "ingest payload"));
    if (folders.job_key.size() != 32 ||
        folders.job_key.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return absl::InvalidArgumentError("ingest payload: job_key: not 32 hex digits");
    }
  }
  return folders;
}

Status SaveManifest(const IngestFolders& folders, const IngestManifest& manifest) {
  PB_RETURN_IF_ERROR(MakeDirectories(StrCat(folders.Job(), "/slides"), 0700));
  const Json json = {{"sources", manifest.sources},
                     {"settings", ToJson(manifest.settings)},
                     {"pseudonym_key", manifest.pseudonym_key}};
  return WriteFileDurably(StrCat(folders.Job(), "/manifest.json"), AsBytes(json.dump()), 0600);
}

StatusOr<IngestManifest> LoadManifest(const IngestFolders& folders) {
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(StrCat(folders.Job(), "/manifest.json"), kMaxManifestBytes));
  constexpr std::string_view kWhat = "ingest manifest";
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kWhat));
  IngestManifest manifest;
  PB_ASSIGN_OR_RETURN(const Json* settings, JsonMember(json, "settings", kWhat));
  PB_ASSIGN_OR_RETURN(manifest.settings, ParseIngestSettings(*settings));
  PB_ASSIGN_OR_RETURN(manifest.pseudonym_key, JsonString(json, "pseudonym_key", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* sources, JsonMember(json, "sources", kWhat));
  for (const Json& source : *sources) {
    if (!source.is_string())
      return absl::InvalidArgumentError(StrCat(kWhat, ": sources: not text"));
    manifest.sources.push_back(source.get<std::string>());
  }
  return manifest;
}

std::string SlideKey(const Digest& source, const IngestSettings& settings) {
  return Sha256Of(StrCat("ingest ", kStoreFormat, "\n", source.Hex(), "\n", settings.Canonical()))
      .Hex()
      .substr(0, 32);
}

StatusOr<std::string> StoreName(const IngestManifest& manifest, const std::string& source_path,
                                const Digest& source) {
  if (manifest.settings.keep_names) {
    return StrCat(std::filesystem::path(source_path).stem().string(), ".ome.zarr");
  }
  if (manifest.pseudonym_key.empty()) {
    return absl::InvalidArgumentError(
        "name store: the job has no pseudonym key and does not keep names");
  }
  return StrCat(HmacSha256(AsBytes(manifest.pseudonym_key), source.Hex()).Hex().substr(0, 16),
                ".ome.zarr");
}

Status SaveOutcome(const IngestFolders& folders, std::int64_t slide, const SlideOutcome& o) {
  const Json json = {{"slide_key", o.slide_key},         {"store", o.store},
                     {"source_sha256", o.source_sha256}, {"digest", o.digest},
                     {"pixel_digest", o.pixel_digest},   {"source_bytes", o.source_bytes},
                     {"stored_bytes", o.stored_bytes},   {"absent_pieces", o.absent_pieces},
                     {"already_there", o.already_there}};
  return WriteFileDurably(folders.SlideFile(slide), AsBytes(DumpJson(json)), 0600);
}

StatusOr<SlideOutcome> LoadOutcome(const IngestFolders& folders, std::int64_t slide) {
  PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(folders.SlideFile(slide), kMaxOutcomeBytes));
  constexpr std::string_view kWhat = "slide outcome";
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kWhat));
  SlideOutcome o;
  PB_ASSIGN_OR_RETURN(o.slide_key, JsonString(json, "slide_key", kWhat));
  PB_ASSIGN_OR_RETURN(o.store, JsonString(json, "store", kWhat));
  PB_ASSIGN_OR_RETURN(o.source_sha256, JsonString(json, "source_sha256", kWhat));
  PB_ASSIGN_OR_RETURN(o.digest, JsonString(json, "digest", kWhat));
  PB_ASSIGN_OR_RETURN(o.pixel_digest, JsonString(json, "pixel_digest", kWhat));
  PB_ASSIGN_OR_RETURN(const std::int64_t source_bytes, JsonInt(json, "source_bytes", kWhat));
  PB_ASSIGN_OR_RETURN(const std::int64_t stored_bytes, JsonInt(json, "stored_bytes", kWhat));
  PB_ASSIGN_OR_RETURN(const std::int64_t absent_pieces, JsonInt(json, "absent_pieces", kWhat));
  PB_ASSIGN_OR_RETURN(o.already_there, JsonBool(json, "already_there", kWhat));
  o.source_bytes = static_cast<std::uint64_t>(source_bytes);
  o.stored_bytes = static_cast<std::uint64_t>(stored_bytes);
  o.absent_pieces = static_cast<std::uint64_t>(absent_pieces);
  return o;
}

Status UpdateManifestCsv(const IngestFolders& folders, const IngestManifest& manifest,
                         const std::vector<std::pair<std::int64_t, SlideOutcome>>& finished) {
  const std::string path = StrCat(folders.out, "/manifest.csv");
  std::map<std::string, std::string> rows;
  auto existing = ReadFile(path, kMaxManifestBytes);
  if (existing.ok()) {
    rows = ExistingRows(*existing);
  } else if (existing.status().code() != absl::StatusCode::kNotFound) {
    return existing.status();
  }
  for (const auto& [slide, o] : finished) {
    rows[o.store] =
        StrCat(o.store, ",", CsvField(manifest.sources[static_cast<std::size_t>(slide)]), ",",
               o.source_sha256, ",", o.digest, ",", o.pixel_digest, "\r\n");
  }
  std::string text(kCsvHeader);
  for (const auto& [store, row] : rows) text += row;
  return WriteFileDurably(path, AsBytes(text), 0600);
}

}  // namespace patchbay::workers
