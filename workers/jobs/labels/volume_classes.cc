#include <array>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/os/available_memory.h"
#include "workers/jobs/labels/class_values.h"
#include "workers/jobs/labels/volume_import.h"

namespace patchbay::workers {
namespace {

StatusOr<VoxelClasses> ByValue(const plan::ClassTable& table, const std::string& site,
                               LabelVolume labels) {
  PB_ASSIGN_OR_RETURN(auto meaning, plan::MaskValues(table, site));
  if (labels.ignores_255) meaning[plan::kIgnoreClass] = plan::kIgnoreClass;
  std::array<std::uint64_t, 256> seen{};
  for (std::uint8_t& value : labels.values) {
    ++seen[value];
    value = static_cast<std::uint8_t>(meaning[value].value_or(plan::kIgnoreClass));
  }
  PB_RETURN_IF_ERROR(CheckMaskValues(seen, meaning, "voxels"));
  return VoxelClasses{std::move(labels.values), {}, 0};
}

/// One segment to paint, and its value.
struct Stroke {
  std::size_t segment = 0;
  std::uint8_t value = 0;
};

StatusOr<std::vector<Stroke>> StrokesOf(const plan::ClassTable& table, const LabelVolume& labels,
                                        VoxelClasses& out) {
  std::vector<std::vector<Stroke>> by_class(table.classes.size());
  std::vector<Stroke> strokes;
  std::vector<std::string> unknown;
  for (std::size_t i = 0; i < labels.segments.size(); ++i) {
    const std::string& name = labels.segments[i];
    const plan::NamedClass named = plan::MeaningOf(table, name);
    if (named.meaning == plan::NameMeaning::kUnknown) unknown.push_back(name);
    if (named.meaning == plan::NameMeaning::kSkipped) out.skipped.push_back(name);
    if (named.meaning == plan::NameMeaning::kRegionOfInterest) {
      const plan::LabelClass* background = table.Find(table.background);
      if (background != nullptr) {
        strokes.push_back({i, static_cast<std::uint8_t>(background->value)});
      }
    }
    if (named.meaning != plan::NameMeaning::kClass) continue;
    const int value = table.classes[named.index].value;
    by_class[named.index].push_back({i, static_cast<std::uint8_t>(value)});
  }
  if (!unknown.empty()) {
    return InvalidArgument("import labels: segments that the class table does not have: ",
                           StrJoin(unknown, ", "));
  }
  for (const auto& one : by_class) strokes.insert(strokes.end(), one.begin(), one.end());
  return strokes;
}

StatusOr<VoxelClasses> BySegment(const plan::ClassTable& table, const LabelVolume& labels,
                                 const VolumeProgress& progress) {
  VoxelClasses out;
  PB_ASSIGN_OR_RETURN(const std::vector<Stroke> strokes, StrokesOf(table, labels, out));
  const auto voxels = static_cast<std::size_t>(labels.size.Pixels());
  PB_RETURN_IF_ERROR(CheckMemoryFits("import labels", 3 * voxels, AvailableMemory()));
  out.values.assign(voxels, UncoveredClass(table));
  std::vector<std::uint8_t> once(voxels), several(voxels);
  std::vector<std::uint8_t> own(voxels);
  for (const Stroke& stroke : strokes) {
    std::fill(own.begin(), own.end(), std::uint8_t{0});
    PB_RETURN_IF_ERROR(labels.paint(stroke.segment, 1, own));
    for (std::size_t i = 0; i < voxels; ++i) {
      if (own[i] == 0) continue;
      several[i] = static_cast<std::uint8_t>(several[i] | once[i]);
      once[i] = 1;
      out.values[i] = stroke.value;
    }
    if (progress) PB_RETURN_IF_ERROR(progress());
  }
  for (const std::uint8_t flag : several) out.overlapping += flag;
  return out;
}

}  // namespace

StatusOr<VoxelClasses> ClassesOf(const plan::ClassTable& table, const std::string& site,
                                 LabelVolume labels, const VolumeProgress& progress) {
  if (labels.segments.empty()) return ByValue(table, site, std::move(labels));
  return BySegment(table, labels, progress);
}

}  // namespace patchbay::workers
