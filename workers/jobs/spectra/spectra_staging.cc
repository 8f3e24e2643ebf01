#include "workers/jobs/spectra/spectra_staging.h"

#include <utility>

#include "runtime/core/base64.h"
#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "workers/access/stamps.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxSlideBytes = 1u << 20;
constexpr std::size_t kMaxFailureBytes = 64u << 10;
constexpr std::size_t kMaxArrayBytes = std::size_t{256} << 20;
/// Version of the sums: raise it when the same sources and settings would give other sums, so that
/// old work is not adopted.
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
  Json json = JsonOf(settings);
  json.erase("strip");
  return DumpJson(json);
}

/// Whether a failed slide may be hashed: a sparse file of terabytes may not.
bool CanBeNamed(const Folders& allowed, const std::string& path) {
  const auto size_bytes = SizeOf(allowed, path);
  return !size_bytes.ok() || *size_bytes <= kMaxUnopenedBytes || OpenImage(allowed, path).ok();
}

Status LeaveFailure(TaskContext& context, const Status& reason) {
  PB_ASSIGN_OR_RETURN(const SpectraTask task, OpenSpectraTask(context));
  SlideFailure failure{OutcomeOf(reason), "", ""};
  if (CanBeNamed(context.allowed, task.path)) {
    const auto name = NameOfSlide(context, task);
    if (name.ok()) failure.id = name->id, failure.digest = name->digest;
  }
  return WriteFileDurably(context.allowed, task.FailureFile(), AsBytes(DumpJson(JsonOf(failure))),
                          0600);
}

}  // namespace

StatusOr<SpectraTask> OpenSpectraJob(const TaskContext& context) {
  SpectraTask job(context.allowed);
  PB_RETURN_IF_ERROR(OpenStagedJob(context, kSpectraJob, job));
  PB_ASSIGN_OR_RETURN(job.settings, ParseSpectraSettings(job.manifest.settings));
  return job;
}

StatusOr<SpectraTask> OpenSpectraTask(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(SpectraTask task, OpenSpectraJob(context));
  PB_RETURN_IF_ERROR(TakeSlide(context, task));
  PB_ASSIGN_OR_RETURN(task.path, context.MayRead(task.Source()));
  task.after_file = ProgressOf(context);
  PB_ASSIGN_OR_RETURN(task.asked, FromJson<SpectraPayload>(context.payload, "spectra payload",
                                                           UnknownKeys::kSkipped));
  return task;
}

std::string SpectraJobKey(const SpectraTask& job) {
  return JobKeyOf(job.manifest, StrCat("spectra ", kSpectraFormat, "\n", Canonical(job.settings)));
}

StatusOr<std::string> SpectraStamp(const SpectraTask& task) {
  const std::string& path = task.path;
  PB_ASSIGN_OR_RETURN(std::string stamp, StampOf(task.folders.allowed, path, task.after_file));
  if (!stamp.empty()) return stamp;
  const auto digest = RecordedDigest(task.folders.allowed, path);
  if (!digest) {
    return ErrorAbout(absl::StatusCode::kNotFound, "stat", path, "it is no longer a store");
  }
  return digest->Hex();
}

Status CheckSpectraStamp(const SpectraTask& task) {
  PB_ASSIGN_OR_RETURN(const std::string seen, SpectraStamp(task));
  if (seen == task.asked.stamp) return absl::OkStatus();
  return task.Error(absl::StatusCode::kFailedPrecondition,
                    "it changed while it was being measured");
}

StatusOr<SlideName> NameOfSlide(TaskContext& context, const SpectraTask& task) {
  PB_ASSIGN_OR_RETURN(const Digest digest, ImageDigest(context, task.path));
  SlideName name;
  name.digest = digest.Hex();
  name.id = PseudonymOf(task.manifest, digest);
  const StatusOr<Digest> source = Digest::FromHex(zarr::SourceDigestOf(context.allowed, task.path));
  name.origin = source.ok() ? PseudonymOf(task.manifest, *source) : name.id;
  return name;
}

Status SaveSlideSpectra(const SpectraTask& task, SlideSpectra& spectra) {
  spectra.encoded_sums = SumsToJson(spectra.sums);
  const Json json = JsonOf<SlideRecord>(spectra);
  return WriteFileDurably(task.folders.allowed, task.SlideFile(), AsBytes(DumpJson(json)), 0600);
}

StatusOr<SlideSpectra> LoadSlideSpectra(const SpectraTask& task) {
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(task.folders.allowed, task.SlideFile(), kMaxSlideBytes));
  constexpr std::string_view kWhat = "slide spectra";
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kWhat));
  SlideSpectra spectra;
  PB_RETURN_IF_ERROR(ReadJson<SlideRecord>(json, JsonPlace(kWhat), spectra));
  PB_ASSIGN_OR_RETURN(spectra.sums, SumsFromJson(spectra.encoded_sums, task.settings));
  return spectra;
}

StatusOr<std::string> SaveSpectraArray(const StagedFolders& folders, std::string_view bytes) {
  const std::string hash = Sha256Of(bytes).Hex();
  PB_RETURN_IF_ERROR(
      WriteFileDurably(folders.allowed, folders.InJob("arrays/" + hash), AsBytes(bytes), 0600));
  return hash;
}

StatusOr<std::string> LoadSpectraArray(const StagedFolders& folders, const std::string& hash) {
  if (!IsHash(hash)) return InvalidArgument("spectra: the name of an array is not a hash");
  const std::string path = folders.InJob("arrays/" + hash);
  PB_ASSIGN_OR_RETURN(std::string bytes, ReadFile(folders.allowed, path, kMaxArrayBytes));
  if (Sha256Of(bytes).Hex() == hash) return bytes;
  return ErrorAbout(absl::StatusCode::kDataLoss, "spectra", path,
                    "its bytes do not match its name");
}

StatusOr<TaskOutput> LeaveSpectraFailure(TaskContext& context, const Status& why) {
  // Where it cannot be written the job's own row still has the reason.
  LeaveFailure(context, context.WithSubjects(why)).IgnoreError();
  return why;
}

SlideFailure LoadSpectraFailure(const SpectraTask& task) {
  const auto text = ReadFile(task.folders.allowed, task.FailureFile(), kMaxFailureBytes);
  if (!text.ok()) return {};
  const auto json = ParseJson(*text, "slide failure");
  return json.ok() ? FromJson<SlideFailure>(*json, "slide failure").value_or(SlideFailure{})
                   : SlideFailure{};
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
    return InvalidArgument("spectra sums: not a list of ", channels);
  }
  std::vector<ops::SpectralSums> sums;
  for (const Json& text : json) {
    if (!text.is_string()) return InvalidArgument("spectra sums: not text");
    PB_ASSIGN_OR_RETURN(const std::string bytes, FromBase64(text.get_ref<const std::string&>()));
    PB_ASSIGN_OR_RETURN(ops::SpectralSums channel, ops::Decode(bytes, options));
    sums.push_back(std::move(channel));
  }
  return sums;
}

}  // namespace patchbay::workers
