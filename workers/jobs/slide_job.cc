#include "workers/jobs/slide_job.h"

#include <filesystem>
#include <system_error>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "workers/jobs/find_images.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxManifestBytes = 256u << 20;
constexpr std::size_t kPseudonymDigits = 16;

std::string ManifestFile(const SlideJobFolders& folders) {
  return StrCat(folders.Job(), "/manifest.json");
}

Status CheckJobKey(const std::string& key, std::string_view what) {
  if (key.size() == kJobKeyDigits &&
      key.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat(what, ": job_key: not ", kJobKeyDigits, " hex digits"));
}

}  // namespace

StatusOr<SlideJobFolders> SlideJobFoldersOf(const TaskContext& context, const std::string& job) {
  SlideJobFolders folders;
  folders.job = job;
  PB_ASSIGN_OR_RETURN(const std::string out,
                      JsonString(context.manifest, "out", StrCat(job, " manifest")));
  PB_ASSIGN_OR_RETURN(folders.out, context.MayWrite(out));
  if (context.payload.contains("job_key")) {
    const std::string what = StrCat(job, " payload");
    PB_ASSIGN_OR_RETURN(folders.job_key, JsonString(context.payload, "job_key", what));
    PB_RETURN_IF_ERROR(CheckJobKey(folders.job_key, what));
  }
  return folders;
}

Status SaveSlideJobManifest(const SlideJobFolders& folders, const SlideJobManifest& manifest,
                            const Json& settings) {
  PB_RETURN_IF_ERROR(MakeDirectories(StrCat(folders.Job(), "/slides"), 0700));
  const Json json = {{"sources", manifest.sources},
                     {"settings", settings},
                     {"pseudonym_key", manifest.pseudonym_key}};
  return WriteFileDurably(ManifestFile(folders), AsBytes(json.dump()), 0600);
}

StatusOr<Json> LoadSlideJobManifest(const SlideJobFolders& folders, SlideJobManifest& manifest) {
  const std::string what = StrCat(folders.job, " manifest");
  PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(ManifestFile(folders), kMaxManifestBytes));
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, what, kMaxManifestBytes));
  PB_ASSIGN_OR_RETURN(manifest.sources, ManifestPaths(json, "sources"));
  PB_ASSIGN_OR_RETURN(manifest.pseudonym_key, JsonString(json, "pseudonym_key", what));
  PB_ASSIGN_OR_RETURN(const Json* settings, JsonMember(json, "settings", what));
  return *settings;
}

StatusOr<std::int64_t> SlideNumberOf(const TaskContext& context, const SlideJobFolders& folders,
                                     const SlideJobManifest& manifest) {
  const std::string what = StrCat(folders.job, " payload");
  PB_ASSIGN_OR_RETURN(const std::int64_t slide, JsonInt(context.payload, "slide", what));
  if (slide >= 0 && slide < static_cast<std::int64_t>(manifest.sources.size())) return slide;
  return absl::InvalidArgumentError(StrCat(what, ": slide: ", slide, " is not in the manifest"));
}

std::string PseudonymOf(const SlideJobManifest& manifest, const Digest& source) {
  return HmacSha256(AsBytes(manifest.pseudonym_key), source.Hex())
      .Hex()
      .substr(0, kPseudonymDigits);
}

void RemoveJobFolder(const SlideJobFolders& folders) {
  std::error_code ignored;
  std::filesystem::remove_all(folders.Job(), ignored);
  std::filesystem::remove(folders.Root(), ignored);  // where no other job has one
}

}  // namespace patchbay::workers
