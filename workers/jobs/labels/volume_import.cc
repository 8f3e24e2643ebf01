#include "workers/jobs/labels/volume_import.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/label_writer.h"
#include "runtime/model/plan/class_histograms.h"
#include "runtime/model/plan/value_statistics.h"
#include "runtime/model/positions/component_index.h"
#include "runtime/model/positions/position_index.h"
#include "runtime/model/results/label_reports.h"
#include "runtime/os/available_memory.h"
#include "workers/jobs/labels/class_map.h"
#include "workers/jobs/labels/class_values.h"
#include "workers/jobs/labels/export_formats.h"
#include "workers/jobs/labels/labels.h"
#include "workers/jobs/labels/position_builder.h"
#include "workers/jobs/labels/volume_grid.h"
#include "workers/jobs/task/identity.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/task.h"
#include "workers/jobs/task/volume_writer.h"
#include "workers/sources/channel_choice.h"
#include "workers/sources/image_source.h"
#include "workers/sources/volumes/structure_set.h"

namespace patchbay::workers {
namespace {

/// The most of a class that may lie outside; more is another scan's mask, or a shifted one.
constexpr double kMostLost = 0.01;

Status RefuseImport(std::string_view cause) { return InvalidArgument("import labels: ", cause); }

/// The labels of a volume on its grid, and how they came to be.
struct VolumeLabels {
  std::vector<std::uint8_t> voxels;  ///< x fastest
  std::array<std::uint64_t, 256> counts{};
  GridFit fit;
  results::VolumeLabelReport report;
  Digest file;
  Json map = Json::object();  ///< attributes of a class map
};

/// The values of a channel of the image under each class.
struct CountedClasses {
  plan::ClassHistograms histograms;
  Json moments = nullptr;  ///< plan::Moments by class, where values are float32
};

/// A segmentation of another scan of the patient, or of another patient, has a frame of reference
/// that no slice of the image has. The store has them under the pseudonym key only.
StatusOr<std::string> CheckFrame(const std::string& key, const LabelledImage& image,
                                 const std::string& frame) {
  const std::vector<std::string>& known = image.frames_of_reference;
  if (frame.empty() || known.empty() || key.empty()) return std::string("unknown");
  const std::string hashed = PseudonymOf(key, "frame_of_reference", frame);
  if (std::find(known.begin(), known.end(), hashed) != known.end()) return std::string("matches");
  return RefuseImport(
      "the segmentation has another frame of reference than the image: it is of another scan");
}

bool IsForeground(const plan::ClassTable& table, const plan::LabelClass& one) {
  return one.value != plan::kIgnoreClass && one.name != table.background &&
         one.name != plan::kBackgroundClass;
}

/// Something of the segmentation lies on the image.
Status CheckPlaced(const plan::ClassTable& table, const std::vector<std::uint8_t>& drawn,
                   const VolumeLabels& labels) {
  if (labels.fit.covered == 0) {
    return RefuseImport(
        "the segmentation lies outside the image: their places in the patient differ");
  }
  const std::uint8_t uncovered = UncoveredClass(table);
  const auto is_drawn = [&](std::uint8_t value) { return value != uncovered; };
  const bool has_any = std::any_of(drawn.begin(), drawn.end(), is_drawn);
  const bool has_here = std::any_of(labels.voxels.begin(), labels.voxels.end(), is_drawn);
  if (!has_any || has_here) return absl::OkStatus();
  return RefuseImport("all marked voxels of the segmentation lie outside the image");
}

/// Describes each class that has 1 % or more of its voxels outside the image, or none on it; ""
/// without any. Background and ignored classes do not count, since they surround most images.
std::string LossesOf(const plan::ClassTable& table, const VolumeLabels& labels) {
  std::string text;
  for (std::size_t i = 0; i < table.classes.size(); ++i) {
    const plan::LabelClass& one = table.classes[i];
    const results::ClassVoxels& found = labels.report.classes[i];
    if (!IsForeground(table, one) || found.drawn_voxels == 0) continue;
    const double part =
        static_cast<double>(found.lost_voxels) / static_cast<double>(found.drawn_voxels);
    if (part <= kMostLost && found.voxels > 0) continue;
    text += StrCat(text.empty() ? "" : ", ", "'", one.name, "' loses ", found.lost_voxels, " of ",
                   found.drawn_voxels, " voxels outside the image",
                   found.voxels == 0 ? " and has none on it" : "");
  }
  return text;
}

/// The file's voxels.
StatusOr<LabelVolume> ReadRow(TaskContext& context, const ImportRow& row, VolumeLabels& labels) {
  if (!IsClassMap(row.file)) {
    PB_ASSIGN_OR_RETURN(const auto files, LabelFiles(context.allowed, row.file));
    PB_ASSIGN_OR_RETURN(labels.file, DigestOfFiles(context, files));
    if (!IsStructureSet(context.allowed, row.file)) {
      return ReadLabelVolume(context.allowed, row.file, ProgressOf(context));
    }
    PB_ASSIGN_OR_RETURN(const VoxelGrid slices, SourceGridOf(row.image));
    return ReadStructureSet(context.allowed, row.file, slices.size, slices.affine,
                            ProgressOf(context));
  }
  PB_ASSIGN_OR_RETURN(const OpenedLabels map, OpenClassMap(context, row.file, row.image));
  labels.file = map.set.digest;
  labels.map = map.set.attributes;
  const VoxelGrid grid = GridOf(map);
  LabelVolume volume;
  volume.format = "map", volume.size = grid.size, volume.affine = grid.affine;
  volume.ignores_255 = !map.classes.exhaustive;  // else they are a class of the table
  PB_ASSIGN_OR_RETURN(volume.values, ReadVoxels(context, map));
  return volume;
}

/// Counts the voxels of each class, and those within the image. The values are those of `ignored`,
/// and at the end those of the class table.
Status CountClasses(IgnoredClasses& ignored, const VoxelGrid& mask, const VoxelGrid& image,
                    const VolumeProgress& progress, std::vector<std::uint8_t>& values,
                    VolumeLabels& labels) {
  std::array<std::uint64_t, 256> drawn{};
  for (const std::uint8_t value : values) ++drawn[value];
  std::array<std::uint64_t, 256> outside{};
  if (labels.map.empty()) {  // the last voxels of a class map may be parts of one
    PB_ASSIGN_OR_RETURN(outside, CountOutside(values, mask, image, progress));
  }
  for (const plan::LabelClass& one : ignored.table().classes) {
    const auto value = static_cast<std::size_t>(one.value);
    labels.report.classes.push_back(
        {.name = one.name, .drawn_voxels = drawn[value], .lost_voxels = outside[value]});
  }
  if (!ignored.any()) return absl::OkStatus();
  GridFit fit;
  PB_ASSIGN_OR_RETURN(
      std::vector<std::uint8_t> told_apart,
      OntoGrid(values, mask, image, UncoveredClass(ignored.table()), progress, fit));
  ignored.Resolve(told_apart);
  for (std::uint8_t& value : values) value = ignored.Resolve(value, 0);
  return absl::OkStatus();
}

StatusOr<VolumeLabels> ReadOntoImage(TaskContext& context, const LabelsRequest& request,
                                     const ImportRow& row) {
  const VolumeProgress progress = ProgressOf(context);
  VolumeLabels labels;
  PB_ASSIGN_OR_RETURN(LabelVolume file, ReadRow(context, row, labels));
  labels.report.format = file.format;
  labels.report.left_out = file.left_out;
  PB_ASSIGN_OR_RETURN(labels.report.frame_of_reference,
                      CheckFrame(request.pseudonym_key, row.image, file.frame_of_reference));
  const VoxelGrid mask{file.size, file.affine}, image{row.image.levels[0], row.image.affine};
  IgnoredClasses ignored(request.classes);
  PB_ASSIGN_OR_RETURN(VoxelClasses classes,
                      ClassesOf(ignored.table(), row.site, std::move(file), progress));
  labels.report.skipped = std::move(classes.skipped);
  labels.report.overlapping_voxels = classes.overlapping;
  const auto voxels = static_cast<std::uint64_t>(image.size.Pixels());
  PB_RETURN_IF_ERROR(CheckMemoryFits("import labels", 2 * voxels, AvailableMemory()));
  PB_RETURN_IF_ERROR(CountClasses(ignored, mask, image, progress, classes.values, labels));
  PB_ASSIGN_OR_RETURN(
      labels.voxels,
      OntoGrid(classes.values, mask, image, UncoveredClass(request.classes), progress, labels.fit));
  const bool is_map = !labels.map.empty();  // made of these pixels: it lies where they do
  if (!is_map) PB_RETURN_IF_ERROR(CheckPlaced(request.classes, classes.values, labels));
  for (const std::uint8_t value : labels.voxels) ++labels.counts[value];
  for (std::size_t i = 0; i < labels.report.classes.size(); ++i) {
    const plan::LabelClass& one = request.classes.classes[i];
    results::ClassVoxels& found = labels.report.classes[i];
    found.value = one.value;
    found.voxels = ignored.CountOf(i).value_or(labels.counts[static_cast<std::size_t>(one.value)]);
    if (!IsForeground(request.classes, one)) found.lost_voxels = 0;
  }
  const std::string losses = LossesOf(request.classes, labels);
  if (losses.empty() || request.clip || is_map) return labels;
  return RefuseImport(
      StrCat(losses, ": of another scan, or shifted; --clip imports the part on the image"));
}

StatusOr<std::string> PositionsOf(const LabelsRequest& request, const Extent& size,
                                  const VolumeLabels& labels, const VolumeProgress& progress) {
  PositionBuilder builder(request.classes, size);
  const std::uint8_t* at = labels.voxels.data();
  for (std::int64_t z = 0; z < size.z; ++z) {
    for (std::int64_t y = 0; y < size.y; ++y, at += size.x) builder.AddVoxels(z, y, at);
    PB_RETURN_IF_ERROR(progress());
  }
  return plan::EncodePositionIndex(builder.Finish(labels.counts));
}

std::int16_t NearestHu(double value) {
  return static_cast<std::int16_t>(std::clamp(std::nearbyint(value), -32768.0, 32767.0));
}

/// Adds the voxels of some slices to counts by class and value.
template <typename T>
void Tally(const std::vector<std::byte>& slices, const std::uint8_t* labels,
           std::vector<std::vector<std::uint64_t>>& counts) {
  const auto* values = reinterpret_cast<const T*>(slices.data());
  for (std::size_t i = 0; i < slices.size() / sizeof(T); ++i) {
    std::vector<std::uint64_t>& own = counts[labels[i]];
    if (own.empty()) own.resize(65'536);
    ++own[static_cast<std::size_t>(NearestHu(static_cast<double>(values[i])) + 32'768)];
  }
}

/// Adds the floats of some slices to the moments of their labels.
void AddMoments(const std::vector<std::byte>& slices, const std::uint8_t* labels,
                std::vector<plan::Moments>& moments) {
  const auto* values = reinterpret_cast<const float*>(slices.data());
  std::vector<std::vector<float>> of_label(moments.size());
  for (std::size_t i = 0; i < slices.size() / sizeof(float); ++i) {
    of_label[labels[i]].push_back(values[i]);
  }
  for (std::size_t c = 0; c < moments.size(); ++c) moments[c].Merge(plan::Moments::Of(of_label[c]));
}

/// The classes' parts of the counts by label.
CountedClasses OfClasses(const plan::ClassTable& table,
                         const std::vector<std::vector<std::uint64_t>>& counts,
                         const std::vector<plan::Moments>& moments) {
  CountedClasses found;
  for (const plan::LabelClass& one : table.classes) {
    if (one.value == plan::kIgnoreClass) continue;
    const auto label = static_cast<std::size_t>(one.value);
    plan::ClassHistogram own{static_cast<std::uint8_t>(one.value), one.name, {}};
    for (std::size_t i = 0; i < counts[label].size(); ++i) {
      if (counts[label][i] == 0) continue;
      own.counts[static_cast<std::int16_t>(static_cast<int>(i) - 32'768)] = counts[label][i];
    }
    found.histograms.classes.push_back(std::move(own));
    if (!moments.empty()) found.moments[one.name] = JsonOf(moments[label]);
  }
  std::sort(found.histograms.classes.begin(), found.histograms.classes.end(),
            [](const auto& a, const auto& b) { return a.value < b.value; });
  return found;
}

bool IsCounted(DType dtype) { return dtype == DType::kInt16 || dtype == DType::kFloat32; }

/// Counts the values of a channel of the image under each class.
StatusOr<CountedClasses> CountChannel(TaskContext& context, const plan::ClassTable& table,
                                      const VolumeLabels& labels, const ImageSource& source,
                                      int channel) {
  const ImageLayout& layout = source.layout();
  const DType dtype = layout.dtype;
  const Extent size = layout.levels.front().size;
  const auto scratch = source.MakeScratch();
  EncodedPatch fetched;
  fetched.after_piece = ProgressOf(context);
  if (layout.channels > 1) fetched.channels = {channel};
  std::vector<std::byte> slices, all_channels;
  std::vector<std::vector<std::uint64_t>> counts(256);
  std::vector<plan::Moments> moments(dtype == DType::kFloat32 ? counts.size() : 0);
  for (std::int64_t z = 0; z < size.z; z += kSlicesAtOnce) {
    const std::int64_t depth = std::min(kSlicesAtOnce, size.z - z);
    PB_RETURN_IF_ERROR(source.Fetch(0, BoxAt({z, 0, 0}, {depth, size.y, size.x}), fetched));
    slices.resize(static_cast<std::size_t>(depth * size.y * size.x) * SizeOf(dtype));
    const TensorView view =
        ContiguousView<4>(slices.data(), dtype, {depth, size.y, size.x, std::int64_t{1}});
    PB_RETURN_IF_ERROR(DecodeChosen(source, fetched, view, 0, *scratch, all_channels));
    const std::uint8_t* at = labels.voxels.data() + z * size.y * size.x;
    dtype == DType::kInt16 ? Tally<std::int16_t>(slices, at, counts)
                           : Tally<float>(slices, at, counts);
    if (dtype == DType::kFloat32) AddMoments(slices, at, moments);
    PB_RETURN_IF_ERROR(StepOf(context));
  }
  return OfClasses(table, counts, moments);
}

/// The counts of every channel; none of a volume of several channels whose type has none.
StatusOr<std::vector<CountedClasses>> CountClasses(TaskContext& context,
                                                   const LabelsRequest& request,
                                                   const ImportRow& row,
                                                   const VolumeLabels& labels) {
  PB_ASSIGN_OR_RETURN(const auto source, OpenImage(context.allowed, row.image.store));
  const ImageLayout& layout = source->layout();
  std::vector<CountedClasses> counted;
  if (!IsCounted(layout.dtype) && layout.channels > 1) return counted;
  if (!IsCounted(layout.dtype)) {
    return RefuseImport(StrCat("a volume of ", NameOf(layout.dtype), ", not of Hounsfield units"));
  }
  for (int channel = 0; channel < layout.channels; ++channel) {
    PB_ASSIGN_OR_RETURN(CountedClasses one,
                        CountChannel(context, request.classes, labels, *source, channel));
    counted.push_back(std::move(one));
  }
  return counted;
}

/// The attribute `value_statistics` of a set: of each class, in a list of the channels where there
/// are several. Null without.
Json StatisticsOf(const std::vector<CountedClasses>& channels) {
  if (channels.empty() || channels.front().moments.is_null()) return nullptr;
  if (channels.size() == 1) return channels.front().moments;
  Json list = Json::array();
  for (const CountedClasses& channel : channels) list.push_back(channel.moments);
  return list;
}

/// The index files of the label image, by name.
using IndexFiles = std::vector<std::pair<std::string, std::string>>;

zarr::ImageStoreSpec VolumeSpecOf(const LabelsRequest& request, const ImportRow& row,
                                  const VolumeLabels& labels, const IndexFiles& files) {
  zarr::ImageStoreSpec spec = RevisionSpec(request, row, labels.counts);
  spec.settings = zarr::VolumeLabelSettings();
  Json& own = spec.attributes["labels"];
  own["format"] = labels.report.format;
  own["annotation_sha256"] = labels.file.Hex();
  own["grid"] = labels.fit.is_aligned ? "same" : "resampled";
  own["frame_of_reference"] = labels.report.frame_of_reference;
  own.update(labels.map);
  for (const auto& [name, text] : files) own["files"][name] = Sha256Of(text).Hex();
  return spec;
}

results::VolumeLabelReport VolumeReportOf(const LabelsRequest& request, const ImportRow& row,
                                          const VolumeLabels& labels,
                                          const plan::ComponentIndex& components) {
  const Affine& a = row.image.affine;
  const double ml = std::abs(Dot(Cross(a.x, a.y), a.z)) * 1e-3;
  results::VolumeLabelReport report = labels.report;
  report.set = request.set;
  for (results::ClassVoxels& one : report.classes) {
    one.volume_ml = static_cast<double>(one.voxels) * ml;
    const plan::ClassComponents* parts = components.Find(one.name);
    if (parts != nullptr && parts->is_indexed) one.components = parts->components.size();
  }
  report.ignored_voxels = labels.counts[zarr::kIgnoreLabel];
  report.grid = labels.fit.is_aligned ? "same" : "resampled";
  report.covered_voxels = labels.fit.covered;
  return report;
}

StatusOr<WrittenVolume> Write(TaskContext& context, const LabelsFolder& folder,
                              const zarr::ImageStoreSpec& spec, const VolumeLabels& labels,
                              const IndexFiles& files) {
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, folder.Staging()));
  for (const auto& [name, text] : files) {
    PB_RETURN_IF_ERROR(
        ReplaceFile(context.allowed, StrCat(folder.Staging(), "/", name), AsBytes(text)));
  }
  const auto voxels = [&](const Point& at, std::int64_t count, std::byte* out) {
    const auto from = static_cast<std::size_t>(IndexOf(spec.levels[0], at));
    std::memcpy(out, labels.voxels.data() + from, static_cast<std::size_t>(count));
  };
  const auto go_on = [&context](double) { return StepOf(context).ok(); };
  return WriteVolumeStore(context.allowed, folder.Staging(), spec, voxels, go_on);
}

}  // namespace

StatusOr<TaskOutput> ImportVolume(TaskContext& context, const LabelsRequest& request,
                                  const ImportRow& row) {
  PB_ASSIGN_OR_RETURN(const VolumeLabels labels, ReadOntoImage(context, request, row));
  const Extent size = row.image.levels[0];
  const VolumeProgress progress = ProgressOf(context);
  PB_ASSIGN_OR_RETURN(
      const plan::ComponentIndex components,
      FindComponents(request.classes, labels.voxels, size, AvailableMemory(), progress));
  TaskOutput output;
  results::VolumeLabelReport report = VolumeReportOf(request, row, labels, components);
  if (request.dry_run) {
    output.result = DumpJson(JsonOf(report));
    return output;
  }
  PB_ASSIGN_OR_RETURN(std::string positions, PositionsOf(request, size, labels, progress));
  IndexFiles files = {{plan::kPositionIndexFile, std::move(positions)},
                      {plan::kComponentIndexFile, plan::EncodeComponentIndex(components)}};
  PB_ASSIGN_OR_RETURN(const auto channels, CountClasses(context, request, row, labels));
  for (std::size_t i = 0; i < channels.size(); ++i) {
    files.emplace_back(plan::ClassHistogramsFileOf(i),
                       plan::EncodeClassHistograms(channels[i].histograms));
  }
  zarr::ImageStoreSpec spec = VolumeSpecOf(request, row, labels, files);
  if (Json statistics = StatisticsOf(channels); !statistics.is_null()) {
    spec.attributes["labels"]["value_statistics"] = std::move(statistics);
  }
  PB_ASSIGN_OR_RETURN(const LabelsFolder folder, LabelsFolder::Open(context, row.image.store));
  PB_ASSIGN_OR_RETURN(const WrittenVolume written, Write(context, folder, spec, labels, files));
  PB_ASSIGN_OR_RETURN(const bool was_there,
                      PublishRevision(context, folder, request, row, written.roots.bytes));
  report.digest = written.roots.bytes.Hex();
  report.revision = zarr::RevisionName(request.set, written.roots.bytes);
  report.already_there = was_there;
  report.stored_bytes = written.stored_bytes;
  output.result = DumpJson(JsonOf(report));
  output.progress_bytes = written.stored_bytes;
  return output;
}

}  // namespace patchbay::workers
