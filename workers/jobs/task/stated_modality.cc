#include "workers/jobs/task/stated_modality.h"

#include <algorithm>
#include <filesystem>

#include "runtime/core/strings.h"
#include "runtime/model/source/channel_names.h"
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

/// The dataset.json above the file's folder; null without one.
Json DatasetOf(const TaskContext& context, const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  const std::string name = folder.filename().string();
  if (name != "imagesTr" && name != "imagesTs") return {};
  return ReadBeside(context, (folder.parent_path() / "dataset.json").string());
}

}  // namespace

std::optional<ModalityRecord> StatedModality(const TaskContext& context, VolumeFormat format,
                                             const std::string& file, const std::string& channel) {
  if (format == VolumeFormat::kDicom) return std::nullopt;
  std::string stem = file;
  for (const std::string_view ending : {".gz", ".nii", ".nrrd", ".nhdr", ".mha", ".mhd"}) {
    if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
  }
  if (const auto said = SideCarModality(ReadBeside(context, stem + ".json"))) {
    return ModalityRecord{*said, "side-car"};
  }
  const Json dataset = DatasetOf(context, file);
  const std::vector<std::string> names = DatasetChannels(dataset);
  const bool is_named = std::find(names.begin(), names.end(), channel) != names.end();
  const auto said = is_named ? ChannelModality(channel) : DatasetModality(dataset);
  return said ? std::optional(ModalityRecord{*said, "dataset.json"}) : std::nullopt;
}

std::vector<std::string> StatedChannels(const TaskContext& context, const std::string& file) {
  return DatasetChannels(DatasetOf(context, file));
}

}  // namespace patchbay::workers
