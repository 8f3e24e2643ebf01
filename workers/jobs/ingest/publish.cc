#include "workers/jobs/ingest/publish.h"

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/zarr/verify.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxRootMetadataBytes = 1u << 20;

/// attributes.patchbay of a store's root, or an empty object when it is not a store of ours.
Json PatchbayAttributes(const std::string& store) {
  const auto text = ReadFile(StrCat(store, "/zarr.json"), kMaxRootMetadataBytes);
  if (!text.ok()) return Json::object();
  const auto root = ParseJson(*text, "zarr.json");
  if (!root.ok() || !root->is_object()) return Json::object();
  const Json attributes = root->value("attributes", Json::object());
  return attributes.is_object() ? attributes.value("patchbay", Json::object()) : Json::object();
}

}  // namespace

StatusOr<bool> AdoptFinishedStore(const IngestFolders& folders, const std::string& name,
                                  const IngestSettings& settings, SlideOutcome& outcome) {
  const std::string target = StrCat(folders.out, "/", name);
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(target, error))) return false;
  const Json attributes = PatchbayAttributes(target);
  PB_ASSIGN_OR_RETURN(const Json wanted, ParseJson(settings.Canonical(), "settings"));
  if (attributes.value("source_sha256", "") != outcome.source_sha256 ||
      attributes.value("codec_plan", Json()) != wanted) {
    return absl::AlreadyExistsError(StrCat(
        "ingest: ", target, ": exists and was not made from this slide with these settings"));
  }
  PB_ASSIGN_OR_RETURN(const Json row, zarr::InspectStore(target));
  constexpr std::string_view kWhat = "inspect";
  PB_ASSIGN_OR_RETURN(outcome.digest, JsonString(row, "digest", kWhat));
  PB_ASSIGN_OR_RETURN(outcome.pixel_digest, JsonString(row, "pixel_digest", kWhat));
  PB_ASSIGN_OR_RETURN(const std::int64_t stored, JsonInt(row, "stored_bytes", kWhat));
  outcome.stored_bytes = static_cast<std::uint64_t>(stored);
  outcome.store = name;
  outcome.already_there = true;
  return true;
}

}  // namespace patchbay::workers
