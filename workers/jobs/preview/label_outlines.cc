#include <algorithm>
#include <vector>

#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/plan/class_table.h"
#include "workers/jobs/preview/cards.h"
#include "workers/plots/axes.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kTissueSet = "tissue", kBackground = "background";

StatusOr<std::vector<std::uint8_t>> LabelsAt(const Folders& allowed, const std::string& path,
                                             const ShownLevel& shown) {
  const Extent& size = shown.size;
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<ImageSource> labels, OpenImage(allowed, path));
  const ImageLayout& layout = labels->layout();
  const auto index = static_cast<std::size_t>(shown.level);
  if (layout.dtype != DType::kUint8 || layout.channels != 1 || index >= layout.levels.size() ||
      layout.levels[index].size != size) {
    return InvalidArgument("it does not have the image's levels; import it again");
  }
  const Box& box = shown.box;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(box.Pixels()));
  const TensorView view =
      ContiguousView<3>(reinterpret_cast<std::byte*>(pixels.data()), DType::kUint8,
                        {box.height, box.width, std::int64_t{1}});
  EncodedPatch encoded;
  encoded.after_piece = shown.after_piece;
  PB_RETURN_IF_ERROR(labels->Fetch(shown.level, box, encoded));
  PB_RETURN_IF_ERROR(labels->Decode(encoded, view, plan::kIgnoreClass, *labels->MakeScratch()));
  return pixels;
}

/// One class: its outline where it has pixels, and its line of the legend.
void AddClass(const plan::LabelClass& one, const std::string& set,
              const std::vector<std::uint8_t>& labels, ImageCard& card) {
  const Color color = set == kTissueSet ? kTissueColor : ClassColor(one.value);
  OutlinedArea area{color, std::vector<std::uint8_t>(labels.size())};
  std::size_t count = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    area.inside[i] = labels[i] == one.value ? 1 : 0;
    count += area.inside[i];
  }
  if (count == 0) return;
  const double share = 100 * static_cast<double>(count) / static_cast<double>(labels.size());
  card.classes.push_back(
      {area.color, StrCat(set, ": ", one.name, " ", Digits(share, 1), " % (outlined)")});
  card.areas.push_back(std::move(area));
}

Status AddSet(const Folders& allowed, const std::string& store, const std::string& set,
              const ShownLevel& shown, ImageCard& card) {
  PB_ASSIGN_OR_RETURN(const zarr::OpenedLabelSet opened, zarr::OpenLabelSet(allowed, store, set));
  PB_ASSIGN_OR_RETURN(const plan::ClassTable table,
                      plan::ClassTableFromJson(opened.attributes.value("classes", Json()),
                                               StrCat("label set ", set)));
  PB_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> labels,
                      LabelsAt(allowed, opened.path, shown));
  const std::size_t drawn = card.classes.size();
  for (const plan::LabelClass& one : table.classes) {
    if (one.value == plan::kIgnoreClass || one.name == kBackground) continue;
    AddClass(one, set, labels, card);
  }
  if (card.classes.size() == drawn) card.facts.push_back(StrCat("set ", set, ": no pixels"));
  return absl::OkStatus();
}

}  // namespace

StatusOr<bool> AddLabelOutlines(const Folders& allowed, const std::string& path,
                                const std::string& only, const ShownLevel& shown, ImageCard& card) {
  if (!zarr::IsStore(allowed, path)) {
    if (only.empty()) return false;
    return NotFound("--labels: a slide has no label sets: ingest it, and preview its store");
  }
  if (!only.empty()) {
    const Status found = zarr::OpenLabelSet(allowed, path, only).status();
    if (!found.ok()) return Annotate(found, "--labels");
    PB_RETURN_IF_ERROR(
        Annotate(AddSet(allowed, path, only, shown, card), StrCat("label set '", only, "'")));
    return only == kTissueSet;
  }
  PB_ASSIGN_OR_RETURN(std::vector<zarr::LabelSet> sets, zarr::ReadLabelSets(allowed, path));
  // The tissue below the classes.
  std::stable_partition(sets.begin(), sets.end(),
                        [](const zarr::LabelSet& set) { return set.name == kTissueSet; });
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (i >= kMaxSetsDrawn) {
      card.facts.push_back(
          StrCat("and ", Counted(sets.size() - i, "more label set"), ": --labels SET draws one"));
      break;
    }
    PB_RETURN_IF_ERROR(Annotate(AddSet(allowed, path, sets[i].name, shown, card),
                                StrCat("label set '", sets[i].name, "'")));
  }
  return !sets.empty() && sets.front().name == kTissueSet;
}

}  // namespace patchbay::workers
