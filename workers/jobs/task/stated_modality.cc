#include "workers/jobs/task/stated_modality.h"

#include <filesystem>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxSideCarBytes = 64u << 20;

/// Null where there is none, or no JSON: it is nobody's side-car then.
Json ReadBeside(const TaskContext& context, const std::string& path) {
  const auto canonical = context.MayRead(path);
  if (!canonical.ok()) return {};
  const auto text = ReadFile(context.allowed, *canonical, kMaxSideCarBytes);
  if (!text.ok()) return {};
  return ParseJson(*text, "side-car", kMaxSideCarBytes).value_or(Json());
}

}  // namespace

std::optional<ModalityRecord> StatedModality(const TaskContext& context, VolumeFormat format,
                                             const std::string& file) {
  if (format == VolumeFormat::kDicom) return std::nullopt;
  std::string stem = file;
  for (const std::string_view ending : {".gz", ".nii", ".nrrd", ".nhdr", ".mha", ".mhd"}) {
    if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
  }
  if (const auto said = SideCarModality(ReadBeside(context, stem + ".json"))) {
    return ModalityRecord{*said, "side-car"};
  }
  const fs::path folder = fs::path(file).parent_path();
  const std::string name = folder.filename().string();
  if (name != "imagesTr" && name != "imagesTs") return std::nullopt;
  const auto said =
      DatasetModality(ReadBeside(context, (folder.parent_path() / "dataset.json").string()));
  return said ? std::optional(ModalityRecord{*said, "dataset.json"}) : std::nullopt;
}

}  // namespace patchbay::workers
