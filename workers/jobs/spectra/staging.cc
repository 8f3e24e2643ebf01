#include "workers/jobs/spectra/staging.h"

#include <filesystem>
#include <utility>

#include "runtime/core/base64.h"
#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/outcome_json.h"
#include "runtime/os/file.h"
#include "workers/access/planned_images.h"
#include "workers/access/stamps.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/progress.h"
#include "workers/jobs/task/store_attributes.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxSlideBytes = 1u << 20;
constexpr std::size_t kMaxFailureBytes = 64u << 10;
constexpr std::size_t kMaxArrayBytes = std::size_t{256} << 20;
/// Raised when the same sources and settings would give other sums, so that nothing old is adopted.
constexpr int kSpectraFormat = 1;
constexpr std::size_t kHashDigits = 64;
/// Hashed within seconds, also where the headers of a slide do not tell how long it is.
constexpr std::uintmax_t kMaxUnopenedBytes = std::uintmax_t{4} << 30;

bool IsHash(const std::string& text) {
  return text.size() == kHashDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

/// Everything that decides the sums, and nothing else.
std::string Canonical(const SpectraSettings& settings) {
  Json json = ToJson(settings);
  json.erase("strip");
  return DumpJson(json);
}

/// Whether the size of a slide that failed bounds its hash: a hole of terabytes does not open.
bool CanBeNamed(const Folders& allowed, const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return true;
  const std::uintmax_t size_bytes = std::filesystem::file_size(path, error);
  return !error && (size_bytes <= kMaxUnopenedBytes || OpenImage(allowed, path).ok());
}

Status LeaveFailure(TaskContext& context, const Status& reason) {
  PB_ASSIGN_OR_RETURN(const SpectraTask task, OpenSpectraTask(context));
  Json failure = {{"outcome", ToJson(OutcomeOf(reason))}};
  if (CanBeNamed(context.allowed, task.path)) {
    const auto name = NameOfSlide(context, task);
    if (name.ok()) {
      failure["id"] = name->id;
      failure["digest"] = name->digest;
    }
  }
  return WriteFileDurably(context.allowed, task.folders.FailureFile(task.slide),
                          AsBytes(DumpJson(failure)), 0600);
}

}  // namespace

StatusOr<SpectraFolders> SpectraFoldersOf(const TaskContext& context) {
  PB_ASSIGN_OR_RETURN(SlideJobFolders folders, SlideJobFoldersOf(context, "spectra"));
  return SpectraFolders{std::move(folders)};
}

std::string SpectraJobKey(const SpectraManifest& manifest) {
  return HmacSha256(AsBytes(manifest.pseudonym_key),
                    StrCat("spectra ", kSpectraFormat, "\n", Canonical(manifest.settings), "\n",
                           StrJoin(manifest.sources, "\n")))
      .Hex()
      .substr(0, kJobKeyDigits);
}

Status SaveSpectraManifest(const SpectraFolders& folders, const SpectraManifest& manifest) {
  PB_RETURN_IF_ERROR(SaveSlideJobManifest(folders, manifest, ToJson(manifest.settings)));
  for (const char* below : {"adopted", "failures", "arrays"}) {
    PB_RETURN_IF_ERROR(MakeDirectories(folders.allowed, StrCat(folders.Job(), "/", below), 0700));
  }
  return absl::OkStatus();
}

StatusOr<SpectraManifest> LoadSpectraManifest(const SpectraFolders& folders) {
  SpectraManifest manifest;
  PB_ASSIGN_OR_RETURN(const Json settings, LoadSlideJobManifest(folders, manifest));
  PB_ASSIGN_OR_RETURN(manifest.settings, ParseSpectraSettings(settings));
  return manifest;
}

StatusOr<SpectraTask> OpenSpectraTask(TaskContext& context) {
  SpectraTask task;
  PB_ASSIGN_OR_RETURN(task.folders, SpectraFoldersOf(context));
  PB_ASSIGN_OR_RETURN(task.manifest, LoadSpectraManifest(task.folders));
  PB_ASSIGN_OR_RETURN(task.slide, SlideNumberOf(context, task.folders, task.manifest));
  const std::string& source = task.manifest.sources[static_cast<std::size_t>(task.slide)];
  PB_ASSIGN_OR_RETURN(task.path, context.MayRead(source));
  task.after_file = ProgressOf(context);
  return task;
}

Status SlideError(absl::StatusCode code, const SpectraTask& task, std::string_view cause) {
  return ErrorAbout(code, "spectra",
                    {SubjectKind::kSlide, static_cast<std::uint64_t>(task.slide), ""}, cause);
}

StatusOr<std::string> SpectraStamp(const SpectraTask& task) {
  const std::string& path = task.path;
  PB_ASSIGN_OR_RETURN(std::string stamp, StampOf(task.folders.allowed, path, task.after_file));
  if (!stamp.empty()) return stamp;
  const auto digest = RecordedDigest(task.folders.allowed, path);
  if (!digest)
    return FileError(absl::StatusCode::kNotFound, "stat", path, "it is no longer a store");
  return digest->Hex();
}

Status CheckSpectraStamp(const SpectraTask& task, const std::string& stamp) {
  PB_ASSIGN_OR_RETURN(const std::string seen, SpectraStamp(task));
  if (seen == stamp) return absl::OkStatus();
  return SlideError(absl::StatusCode::kFailedPrecondition, task,
                    "it changed while it was being measured");
}

StatusOr<SlideName> NameOfSlide(TaskContext& context, const SpectraTask& task) {
  PB_ASSIGN_OR_RETURN(const Digest digest, ImageDigest(context, task.path));
  SlideName name;
  name.digest = digest.Hex();
  name.id = PseudonymOf(task.manifest, digest);
  const StatusOr<Digest> source = Digest::FromHex(SourceDigestOf(context.allowed, task.path));
  name.origin = source.ok() ? PseudonymOf(task.manifest, *source) : name.id;
  return name;
}

Status SaveSlideSpectra(const SpectraFolders& folders, std::int64_t slide, const SlideSpectra& s) {
  const Json json = {{"id", s.id},
                     {"origin", s.origin},
                     {"digest", s.digest},
                     {"stamp", s.stamp},
                     {"height", s.height},
                     {"width", s.width},
                     {"channels", s.channels},
                     {"mpp", s.mpp ? Json(*s.mpp) : Json()},
                     {"frames_skipped", s.frames_skipped},
                     {"frames_off_tissue", s.frames_off_tissue},
                     {"sums", SumsToJson(s.sums)},
                     {"coefficients", s.coefficients}};
  return WriteFileDurably(folders.allowed, folders.SlideFile(slide), AsBytes(DumpJson(json)), 0600);
}

StatusOr<SlideSpectra> LoadSlideSpectra(const SpectraFolders& folders, std::int64_t slide,
                                        const plan::SpectralOptions& options) {
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(folders.allowed, folders.SlideFile(slide), kMaxSlideBytes));
  constexpr std::string_view kWhat = "slide spectra";
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kWhat));
  SlideSpectra s;
  PB_ASSIGN_OR_RETURN(s.id, JsonString(json, "id", kWhat));
  PB_ASSIGN_OR_RETURN(s.origin, JsonString(json, "origin", kWhat));
  PB_ASSIGN_OR_RETURN(s.digest, JsonString(json, "digest", kWhat));
  PB_ASSIGN_OR_RETURN(s.stamp, JsonString(json, "stamp", kWhat));
  PB_ASSIGN_OR_RETURN(s.height, JsonInt(json, "height", kWhat));
  PB_ASSIGN_OR_RETURN(s.width, JsonInt(json, "width", kWhat));
  PB_ASSIGN_OR_RETURN(const std::int64_t channels, JsonInt(json, "channels", kWhat));
  s.channels = static_cast<int>(channels);
  PB_ASSIGN_OR_RETURN(const Json* mpp, JsonMember(json, "mpp", kWhat));
  if (!mpp->is_null()) {
    PB_ASSIGN_OR_RETURN(s.mpp, JsonDouble(json, "mpp", kWhat));
  }
  PB_ASSIGN_OR_RETURN(s.frames_skipped, JsonCount(json, "frames_skipped", kWhat));
  PB_ASSIGN_OR_RETURN(s.frames_off_tissue, JsonCount(json, "frames_off_tissue", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* sums, JsonMember(json, "sums", kWhat));
  PB_ASSIGN_OR_RETURN(s.sums, SumsFromJson(*sums, options));
  PB_ASSIGN_OR_RETURN(s.coefficients, ManifestPaths(json, "coefficients"));
  return s;
}

StatusOr<std::string> SaveSpectraArray(const SpectraFolders& folders, std::string_view bytes) {
  const std::string hash = Sha256Of(bytes).Hex();
  PB_RETURN_IF_ERROR(WriteFileDurably(folders.allowed, StrCat(folders.Job(), "/arrays/", hash),
                                      AsBytes(bytes), 0600));
  return hash;
}

StatusOr<std::string> LoadSpectraArray(const SpectraFolders& folders, const std::string& hash) {
  if (!IsHash(hash)) {
    return absl::InvalidArgumentError("spectra: the name of an array is not a hash");
  }
  const std::string path = StrCat(folders.Job(), "/arrays/", hash);
  PB_ASSIGN_OR_RETURN(std::string bytes, ReadFile(folders.allowed, path, kMaxArrayBytes));
  if (Sha256Of(bytes).Hex() == hash) return bytes;
  return FileError(absl::StatusCode::kDataLoss, "spectra", path, "its bytes do not match its name");
}

StatusOr<TaskOutput> EndSpectraTask(TaskContext& context, StatusOr<TaskOutput> output) {
  if (output.ok()) return output;
  if (!absl::IsCancelled(output.status()) && context.payload.contains("slide")) {
    // Where it cannot be written the job's own row still has the reason.
    LeaveFailure(context, context.WithSubjects(output.status())).IgnoreError();
  }
  return output;
}

SlideFailure LoadSpectraFailure(const SpectraFolders& folders, std::int64_t slide) {
  const auto text = ReadFile(folders.allowed, folders.FailureFile(slide), kMaxFailureBytes);
  if (!text.ok()) return {};
  const auto json = ParseJson(*text, "slide failure");
  if (!json.ok() || !json->is_object()) return {};
  const auto member = [&](const char* key) {
    return JsonString(*json, key, "slide failure").value_or("");
  };
  auto outcome = OutcomeFromJson(json->value("outcome", Json()));
  return {outcome.ok() ? *std::move(outcome) : Outcome{}, member("id"), member("digest")};
}

Json SumsToJson(const std::vector<ops::SpectralSums>& sums) {
  Json json = Json::array();
  for (const ops::SpectralSums& channel : sums) json.push_back(Base64Of(ops::Encode(channel)));
  return json;
}

StatusOr<std::vector<ops::SpectralSums>> SumsFromJson(const Json& json,
                                                      const plan::SpectralOptions& options) {
  const auto channels = static_cast<std::size_t>(plan::SpectralChannels(options));
  if (!json.is_array() || json.size() != channels) {
    return absl::InvalidArgumentError(StrCat("spectra sums: not a list of ", channels));
  }
  std::vector<ops::SpectralSums> sums;
  for (const Json& text : json) {
    if (!text.is_string()) return absl::InvalidArgumentError("spectra sums: not text");
    PB_ASSIGN_OR_RETURN(const std::string bytes, FromBase64(text.get_ref<const std::string&>()));
    PB_ASSIGN_OR_RETURN(ops::SpectralSums channel, ops::Decode(bytes, options));
    sums.push_back(std::move(channel));
  }
  return sums;
}

}  // namespace patchbay::workers
