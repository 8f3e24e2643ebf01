#include "workers/jobs/ingest/ingest_volume.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "ops/geometry/resample.h"
#include "ops/zscore/body_mask.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/inspect.h"
#include "runtime/model/plan/value_histogram.h"
#include "runtime/model/plan/value_statistics.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/ingest_publish.h"
#include "workers/jobs/staged/own_table.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/jobs/task/identity.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/mask_files.h"
#include "workers/jobs/task/task.h"
#include "workers/jobs/task/volume_writer.h"
#include "workers/sources/volumes/dicom_volume.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay {

template <>
struct JsonForm<workers::VolumeFormat> {
  static Json To(workers::VolumeFormat format) { return std::string(NameOf(format)); }
  static StatusOr<workers::VolumeFormat> From(const Json& json) {
    return workers::VolumeFormatFromName(json.is_string() ? json.get<std::string>() : "");
  }
};

}  // namespace patchbay

namespace patchbay::workers {
namespace {

/// Millimetres along z, y, x.
using SpacingMm = std::array<double, 3>;

std::int64_t SideAt(std::int64_t side, double from_mm, double to_mm) {
  return std::max<std::int64_t>(1, std::llrint(static_cast<double>(side) * from_mm / to_mm));
}

/// A step of the new grid, and the shift of its first voxel's centre.
Vec3 Stretch(Vec3& step, std::int64_t from, std::int64_t to) {
  const Vec3 old = step;
  step = step * (static_cast<double>(from) / static_cast<double>(to));
  return (step - old) * 0.5;
}

/// nnU-Net's separate z: orders along z, y, x, with 0 along the one coarse axis of an anisotropic
/// volume, or of what is asked for. Two coarse axes are not separated.
std::array<int, 3> SeparateZ(const SpacingMm& from, const SpacingMm& to, int order) {
  constexpr double kAnisotropic = 3, kSame = 1e-6;
  std::array<int, 3> orders = {order, order, order};
  for (const SpacingMm& spacing : {from, to}) {
    const auto [least, most] = std::minmax_element(spacing.begin(), spacing.end());
    if (!(*most / *least > kAnisotropic)) continue;
    const double coarse_mm = *most * (1 - kSame);
    const auto is_coarse = [coarse_mm](double mm) { return mm > coarse_mm; };
    if (std::count_if(spacing.begin(), spacing.end(), is_coarse) == 1) {
      orders[static_cast<std::size_t>(most - spacing.begin())] = 0;
    }
    break;
  }
  return orders;
}

/// As skimage's resize, which nnU-Net calls: values stay within the range of the volume, or of the
/// source's slice across the axis that is resampled by itself.
void KeepRange(const std::vector<float>& in, const Extent& from, const std::array<int, 3>& orders,
               const Extent& to, std::vector<float>& out) {
  const bool is_apart = orders[0] != orders[1] || orders[1] != orders[2];
  const auto axis =
      static_cast<std::size_t>(std::find(orders.begin(), orders.end(), 0) - orders.begin());
  const auto slice_of = [&](const Extent& size, std::int64_t i) -> std::int64_t {
    const std::int64_t at[] = {i / (size.y * size.x), i / size.x % size.y, i % size.x};
    return is_apart ? at[axis] : 0;
  };
  const std::int64_t from_sides[] = {from.z, from.y, from.x}, to_sides[] = {to.z, to.y, to.x};
  std::vector<std::pair<float, float>> ranges(
      static_cast<std::size_t>(is_apart ? from_sides[axis] : 1),
      {std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()});
  for (std::int64_t i = 0; i < from.Pixels(); ++i) {
    auto& [least, most] = ranges[static_cast<std::size_t>(slice_of(from, i))];
    least = std::min(least, in[static_cast<std::size_t>(i)]);
    most = std::max(most, in[static_cast<std::size_t>(i)]);
  }
  for (std::int64_t i = 0; i < to.Pixels(); ++i) {
    // The nearest slice, in whole numbers.
    const std::int64_t source =
        is_apart ? (2 * slice_of(to, i) + 1) * from_sides[axis] / (2 * to_sides[axis]) : 0;
    const auto& [least, most] = ranges[static_cast<std::size_t>(source)];
    float& value = out[static_cast<std::size_t>(i)];
    value = std::clamp(value, least, most);
  }
}

std::vector<float> FloatsOf(const Volume& volume) {
  std::vector<float> values(static_cast<std::size_t>(volume.size.Pixels()));
  if (volume.dtype == DType::kFloat32) {
    std::memcpy(values.data(), volume.voxels.data(), volume.voxels.size());
  } else {
    const auto* from = reinterpret_cast<const std::int16_t*>(volume.voxels.data());
    std::copy(from, from + values.size(), values.begin());
  }
  return values;
}

std::int16_t NearestInt16(float value) {
  return static_cast<std::int16_t>(std::clamp(std::nearbyint(value), -32768.0f, 32767.0f));
}

void PutFloats(const std::vector<float>& values, Volume& volume) {
  volume.voxels.resize(values.size() * SizeOf(volume.dtype));
  if (volume.dtype == DType::kFloat32) {
    std::memcpy(volume.voxels.data(), values.data(), volume.voxels.size());
    return;
  }
  std::transform(values.begin(), values.end(),
                 reinterpret_cast<std::int16_t*>(volume.voxels.data()), NearestInt16);
}

/// Resamples to the nearest whole number of voxels over the same place (halves to even, as
/// nnU-Net), so that the spacing differs from the requested one by less than half a voxel over the
/// whole volume; affine and log have the actual one. int16 stays int16, rounded and clamped. The
/// table of slice positions is emptied, since slices move. ResourceExhausted when memory is short.
Status ResampleTo(const IngestSettings& settings, const VolumeProgress& progress, Volume& volume) {
  const SpacingMm& spacing = *settings.spacing;
  const auto order = static_cast<int>(settings.spacing_order);
  std::array<int, 3> orders = {order, order, order};
  const bool is_separate = settings.anisotropic == "separate_z";
  if (is_separate) {
    orders = SeparateZ({Norm(volume.affine.z), Norm(volume.affine.y), Norm(volume.affine.x)},
                       spacing, order);
  }
  const Extent from = volume.size;
  const Extent to{SideAt(from.z, Norm(volume.affine.z), spacing[0]),
                  SideAt(from.y, Norm(volume.affine.y), spacing[1]),
                  SideAt(from.x, Norm(volume.affine.x), spacing[2])};
  PB_RETURN_IF_ERROR(CheckVolumeSize(to, "resample volume"));
  if (to == from) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const ops::Resample resample, ops::Resample::Make(from, to, orders));
  const std::int64_t planes_voxels = from.z * to.y * to.x;
  const auto bytes =
      static_cast<std::uint64_t>(from.Pixels() + planes_voxels + 2 * to.Pixels()) * sizeof(float);
  PB_RETURN_IF_ERROR(CheckMemoryFits("resample volume", bytes, AvailableMemory()));
  const std::vector<float> in = FloatsOf(volume);
  std::vector<float> planes(static_cast<std::size_t>(planes_voxels));
  std::vector<float> out(static_cast<std::size_t>(to.Pixels()));
  for (std::int64_t z = 0; z < from.z; ++z) {
    resample.Planes(in.data(), z, 1, planes.data());
    if (progress) PB_RETURN_IF_ERROR(progress());
  }
  for (std::int64_t y = 0; y < to.y; ++y) {
    resample.Rows(planes.data(), y, 1, out.data());
    if (progress) PB_RETURN_IF_ERROR(progress());
  }
  if (is_separate) KeepRange(in, from, orders, to, out);
  PutFloats(out, volume);
  volume.size = to;
  volume.affine.origin = volume.affine.origin + Stretch(volume.affine.z, from.z, to.z) +
                         Stretch(volume.affine.y, from.y, to.y) +
                         Stretch(volume.affine.x, from.x, to.x);
  volume.slice_positions.clear();
  volume.log.push_back(
      {{"step", "resample"},
       {"order", orders == std::array{order, order, order} ? Json(order) : Json(orders)},
       {"asked_mm", spacing},
       {"from_shape", {from.z, from.y, from.x}}});
  return absl::OkStatus();
}

constexpr std::int64_t kShardSide = 256;
constexpr std::size_t kMaxVolumeFileBytes = 64u << 20;
constexpr double kFillHu = -1024, kFillOther = 0;

/// The "#" before the series in a source that names a folder and a series; npos otherwise.
std::size_t SeriesMark(const Folders& allowed, const std::string& source) {
  return Exists(allowed, source) ? std::string::npos : source.rfind('#');
}

/// The store's name. Under keep_names it is taken from the file; for a series of a folder, which
/// may have many, from the folder and the content's digest.
StatusOr<std::string> NameOfStore(const IngestTask& task, const Digest& digest) {
  const std::string& source = task.Source();
  std::string name = std::filesystem::path(source).filename().string();
  const std::size_t series = SeriesMark(task.folders.allowed, source);
  if (series != std::string::npos) {
    name = StrCat(std::filesystem::path(source.substr(0, series)).filename().string(), "-",
                  digest.Hex().substr(0, 8));
  }
  for (const char* ending : {".gz", ".nii", ".nrrd", ".nhdr", ".mha", ".mhd", ".dcm"}) {
    if (name.ends_with(ending)) name.resize(name.size() - std::strlen(ending));
  }
  return StoreName(task, name + ".volume", digest);
}

/// Replaces the lines of these sources: source, verdict, reason, slices, files.
Status WriteVerdicts(const StagedFolders& folders,
                     const std::vector<std::vector<std::string>>& rows) {
  return MergeIntoTable(folders, "verdicts.csv", kVerdictsHeader, 1, rows);
}

Status WriteVerdict(const IngestTask& task, const DicomSeries& series, const Judgement& judgement) {
  const std::string folder =
      task.Source().substr(0, SeriesMark(task.folders.allowed, task.Source()));
  std::string files;
  for (const SliceRef& slice : judgement.at_fault) {
    files += StrCat(files.empty() ? "" : "; ", series.NameOf(slice, folder));
  }
  return WriteVerdicts(task.folders, {{task.Source(), std::string(NameOf(judgement.verdict)),
                                       judgement.ReasonAndWay(),
                                       std::to_string(judgement.order.size()), std::move(files)}});
}

StatusOr<SeriesRepair> RepairOf(const PlannedVolume& volume) {
  PB_ASSIGN_OR_RETURN(Repairs rules, ParseRepairs(volume.repair));
  return SeriesRepair{std::move(rules), static_cast<std::size_t>(volume.part)};
}

StatusOr<DicomSeries> OpenPlanned(TaskContext& context, const PlannedVolume& volume) {
  PB_ASSIGN_OR_RETURN(const SeriesRepair repair, RepairOf(volume));
  return OpenSeries(context.allowed, volume.files, ProgressOf(context), repair);
}

StatusOr<Digest> SourceDigest(TaskContext& context, const PlannedVolume& volume) {
  PB_ASSIGN_OR_RETURN(const Digest files, DigestOfFiles(context, volume.files));
  return DigestOfPart(files, static_cast<std::size_t>(volume.part));
}

Status JudgeVolume(TaskContext& context, const IngestTask& task, const PlannedVolume& volume) {
  if (volume.format != VolumeFormat::kDicom) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const DicomSeries series, OpenPlanned(context, volume));
  const Judgement judgement = Judge(series);
  PB_RETURN_IF_ERROR(WriteVerdict(task, series, judgement));
  PB_ASSIGN_OR_RETURN(const GeometryPolicy policy, GeometryPolicyFromName(task.settings.geometry));
  return WithAdvice(CheckGeometry(judgement, policy), "OUT/verdicts.csv names the files");
}

/// The failure of reading a series, which the verdicts then hold: with the file named where one
/// slice is damaged, and that it is no CT where only its voxels told.
Status RecordFailure(TaskContext& context, const IngestTask& task, const PlannedVolume& volume,
                     const Status& failure) {
  const auto slice = SliceAtFault(failure);
  const bool is_damaged = slice && absl::IsDataLoss(failure);
  const bool is_refused =
      absl::IsFailedPrecondition(failure) && volume.format == VolumeFormat::kDicom;
  if (!is_damaged && !is_refused) return failure;
  PB_ASSIGN_OR_RETURN(const DicomSeries series, OpenPlanned(context, volume));
  Judgement judgement = Judge(series);
  if (is_refused) {
    judgement.verdict = Verdict::kNotCt;
    judgement.reason = std::string(MessageOf(failure));
    PB_RETURN_IF_ERROR(WriteVerdict(task, series, judgement));
    return failure;
  }
  if (*slice >= judgement.order.size()) return failure;
  judgement.verdict = Verdict::kNotAVolume;
  judgement.reason = std::string(MessageOf(failure));
  judgement.at_fault = {judgement.order[*slice]};
  PB_RETURN_IF_ERROR(WriteVerdict(task, series, judgement));
  return WithAdvice(failure, "OUT/verdicts.csv names the file");
}

Json SliceTable(const Volume& volume) {
  Json places = Json::array();
  for (const Vec3& p : volume.slice_positions) places.push_back({p.x, p.y, p.z});
  return {{"axis", std::string(1, volume.slice_axis)}, {"positions_lps_mm", std::move(places)}};
}

zarr::ImageStoreSettings StoreSettings(const IngestSettings& settings, DType dtype) {
  zarr::ImageStoreSettings store = zarr::VolumeSettings(dtype);
  const std::int64_t chunk = settings.volume_chunk;
  const std::int64_t shard = std::max<std::int64_t>(1, (kShardSide + chunk / 2) / chunk) * chunk;
  store.chunk = {chunk, chunk, chunk};
  store.shard = {shard, shard, shard};
  store.codec = zarr::StoreCodecFromName(settings.codec).value();
  store.codec_level = static_cast<int>(settings.codec_level);
  return store;
}

Status MayTake(std::uint64_t bytes) {
  return CheckMemoryFits("count values", bytes, AvailableMemory());
}

std::span<const std::int16_t> WholeValues(const Volume& volume) {
  return {reinterpret_cast<const std::int16_t*>(volume.voxels.data()),
          static_cast<std::size_t>(volume.size.Pixels())};
}

/// The histogram of the HU values inside the body; those of float32 rounded. ResourceExhausted
/// when the mask does not fit into memory.
StatusOr<plan::ValueHistogram> BodyHistogramOf(TaskContext& context, const Volume& volume) {
  std::vector<std::int16_t> rounded;
  if (volume.dtype == DType::kFloat32) {
    const auto* values = reinterpret_cast<const float*>(volume.voxels.data());
    rounded.resize(static_cast<std::size_t>(volume.size.Pixels()));
    PB_RETURN_IF_ERROR(MayTake(rounded.size() * sizeof rounded[0]));
    std::transform(values, values + rounded.size(), rounded.begin(), NearestInt16);
  }
  const std::span hu = rounded.empty() ? WholeValues(volume) : std::span(std::as_const(rounded));
  PB_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> body,
                      ops::BodyMask(hu, volume.size, MayTake, ProgressOf(context)));
  plan::ValueHistogram histogram;
  for (std::size_t i = 0; i < hu.size(); ++i) {
    if (body[i] != 0) histogram.Add(hu[i]);
  }
  return histogram;
}

/// Sorts with a call of `progress` every few million values.
Status SortValues(std::span<float> values, const VolumeProgress& progress) {
  constexpr std::size_t kSortedAtOnce = std::size_t{4} << 20;
  if (values.size() <= kSortedAtOnce) {
    std::sort(values.begin(), values.end());
    return progress();
  }
  const std::size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half),
                   values.end());
  PB_RETURN_IF_ERROR(SortValues(values.first(half), progress));
  return SortValues(values.subspan(half), progress);
}

/// Adds the counts that zscore and percentile are computed from. ResourceExhausted when they do not
/// fit into memory.
Status CountValues(TaskContext& context, const Volume& volume, bool may_be_hu, Json& attributes) {
  if (volume.dtype == DType::kInt16) {
    plan::ValueHistogram histogram;
    for (const std::int16_t value : WholeValues(volume)) histogram.Add(value);
    attributes["value_histogram"] = histogram.ToJson();
  } else {
    PB_RETURN_IF_ERROR(MayTake(volume.voxels.size()));
    std::vector<float> values = FloatsOf(volume);
    PB_RETURN_IF_ERROR(SortValues(values, ProgressOf(context)));
    attributes["value_statistics"] = JsonOf(plan::FloatStatistics::Of(values));
  }
  if (!may_be_hu) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const plan::ValueHistogram body, BodyHistogramOf(context, volume));
  attributes["body_histogram"] = body.ToJson();
  return absl::OkStatus();
}

/// Records what differs from the source's own headers: these need no record.
void RecordModality(const IngestTask& task, Json& attributes) {
  if (!task.modality) return;
  ModalityRecord record = *task.modality;
  const auto stated = RecordedModality(attributes);
  if (stated == static_cast<const Modality&>(record)) return;
  if (stated) record.stated = stated;
  attributes["modality"] = JsonOf(record);
}

StatusOr<zarr::ImageStoreSpec> SpecOf(TaskContext& context, const IngestTask& task,
                                      const Volume& volume, const SlideOutcome& outcome) {
  const IngestSettings& settings = task.settings;
  zarr::ImageStoreSpec spec;
  spec.settings = StoreSettings(settings, volume.dtype);
  spec.levels = VolumeLevels(volume.size, spec.settings);
  spec.spacing = volume.SpacingMm();
  Json& a = spec.attributes;
  a["acquisition"] = volume.facts;
  RecordModality(task, a);
  const auto modality = RecordedModality(a);
  // A table may still say that values of unknown unit are Hounsfield units.
  const bool may_be_hu = !modality || modality->IsHu();
  spec.settings.fill_value = may_be_hu ? kFillHu : kFillOther;
  a["source_sha256"] = outcome.source_sha256;
  a["source_kind"] = volume.kind;
  a["source_bytes"] = outcome.source_bytes;
  a["codec_plan"] = ParseJson(settings.Canonical(), "settings").value();
  a["affine_lps"] = ToJson(LpsOf(volume.affine));
  a["affine_ras"] = ToJson(RasOf(volume.affine));
  a["orientation"] = OrientationOf(volume.affine);
  a["transform_log"] = volume.log;
  a["deid_profile"] = "allow-list";
  if (!volume.warnings.empty()) a["warnings"] = volume.warnings;
  const ValueRange range = RangeOf(volume);
  a["value_range"] = JsonOf(zarr::RangeReport{range.min, range.max, range.mean});
  PB_RETURN_IF_ERROR(CountValues(context, volume, may_be_hu, a));
  if (!volume.slice_positions.empty()) a["slice_table"] = SliceTable(volume);
  const Json identity = IdentityOf(task.manifest.pseudonym_key, volume.identity);
  if (!identity.empty()) a["identity"] = identity;
  return spec;
}

Status WriteAndPublish(TaskContext& context, const IngestTask& task, const std::string& name,
                       const Volume& volume, SlideOutcome& outcome) {
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, task.Staging(), 0700));
  PB_ASSIGN_OR_RETURN(const auto lease, LeaseFolder::Make(context, task.Staging()));
  const std::size_t element = SizeOf(volume.dtype);
  const auto row = [&](const Point& at, std::int64_t count, std::byte* out) {
    std::memcpy(out,
                volume.voxels.data() + static_cast<std::size_t>(IndexOf(volume.size, at)) * element,
                static_cast<std::size_t>(count) * element);
  };
  const auto done = [&context](double) { return StepOf(context).ok(); };
  PB_ASSIGN_OR_RETURN(const zarr::ImageStoreSpec spec, SpecOf(context, task, volume, outcome));
  PB_RETURN_IF_ERROR(zarr::Validate(spec.settings));
  const std::string store = lease->File("store");
  PB_ASSIGN_OR_RETURN(const WrittenVolume written,
                      WriteVolumeStore(context.allowed, store, spec, row, done));
  PB_ASSIGN_OR_RETURN(const auto lock, StagingLock::Take(context, task));
  PB_ASSIGN_OR_RETURN(const bool there, AdoptFinishedStore(context, task, name, outcome));
  if (there) return absl::OkStatus();
  return PublishStaged(context, task, {store, spec, written.roots}, name, outcome);
}

/// NaN and infinity spread through every resampling and into the trainer.
Status ReplaceOrRefuse(const std::optional<double>& value, Volume& volume) {
  const NonFiniteVoxels found = FindNonFinite(volume);
  const std::string text = found.ToString(volume.size);
  if (text.empty()) return absl::OkStatus();
  if (value) {
    ReplaceNonFinite(volume, static_cast<float>(*value));
    return absl::OkStatus();
  }
  const Point at = CellAt(volume.size, static_cast<std::int64_t>(found.first));
  return InvalidArgument("read volume: ", text, ", the first at (z, y, x) = (", at.z, ", ", at.y,
                         ", ", at.x, "): --nan VALUE stores VALUE in their places");
}

/// Reads the volume in the orientation and geometry of the settings; fails if its files no longer
/// have the digest `source`.
StatusOr<Volume> ReadSource(TaskContext& context, const IngestTask& task,
                            const PlannedVolume& planned, const Digest& source) {
  ReadVolumeOptions options;
  PB_ASSIGN_OR_RETURN(options.geometry, GeometryPolicyFromName(task.settings.geometry));
  options.is_canonical = task.settings.orientation == "canonical";
  PB_ASSIGN_OR_RETURN(options.repair, RepairOf(planned));
  StatusOr<Volume> volume =
      ReadVolume(context.allowed, planned.format, planned.files, options, ProgressOf(context));
  if (!volume.ok()) return RecordFailure(context, task, planned, volume.status());
  PB_ASSIGN_OR_RETURN(const Digest after, SourceDigest(context, planned));
  if (after != source) {
    return FailedPrecondition("ingest volume: its files changed while it was read");
  }
  PB_RETURN_IF_ERROR(ReplaceOrRefuse(task.settings.nan, *volume));
  if (task.settings.spacing) {
    PB_RETURN_IF_ERROR(ResampleTo(task.settings, ProgressOf(context), *volume));
  }
  return volume;
}

/// About the most memory that a volume needs, in bytes, while it is read, resampled (in float) and
/// written. Rounded up to a power of two, so that volumes of many sizes have few different needs.
/// Never more than this node lets a task use.
std::uint64_t TaskMemoryBytes(std::uint64_t voxel_bytes, bool resamples) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50, kBeside = 64u << 20;
  const std::uint64_t bytes = std::min(voxel_bytes, kMost) * (resamples ? 12 : 4) + kBeside;
  return std::min(std::bit_ceil(bytes), OwnMemoryLimit().bytes / 100 * kMemoryUsePercent);
}

}  // namespace

Status RecordMasks(const StagedFolders& folders, const std::map<std::string, std::string>& masks) {
  if (masks.empty()) return absl::OkStatus();
  std::vector<std::vector<std::string>> rows;
  for (const auto& [path, reason] : masks) {
    rows.push_back(
        {path, std::string(kMaskVerdict), StrCat(reason, ": left out of its folder"), "0", ""});
  }
  return WriteVerdicts(folders, rows);
}

Status SavePlannedVolume(const IngestTask& task, const PlannedVolume& volume) {
  return ReplaceFile(task.folders.allowed, task.VolumeFile(), AsBytes(DumpJson(JsonOf(volume))),
                     0600);
}

StatusOr<std::optional<PlannedVolume>> PlannedVolumeOf(TaskContext& context,
                                                       const IngestTask& task) {
  constexpr std::string_view kWhat = "planned volume";
  const auto text = ReadFile(context.allowed, task.VolumeFile(), kMaxVolumeFileBytes);
  if (absl::IsNotFound(text.status())) return std::optional<PlannedVolume>();
  PB_RETURN_IF_ERROR(text.status());
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(*text, kWhat, kMaxVolumeFileBytes));
  PB_ASSIGN_OR_RETURN(PlannedVolume volume, FromJson<PlannedVolume>(json, kWhat));
  for (std::string& file : volume.files) {
    PB_ASSIGN_OR_RETURN(file, context.MayRead(file));
    PB_RETURN_IF_ERROR(StepOf(context));
  }
  return std::optional(std::move(volume));
}

StatusOr<TaskOutput> OpenVolume(TaskContext& context, IngestTask& task,
                                const PlannedVolume& volume) {
  PB_RETURN_IF_ERROR(JudgeVolume(context, task, volume));
  task.settings.repair = volume.repair;
  PB_ASSIGN_OR_RETURN(const Digest source, SourceDigest(context, volume));
  PB_ASSIGN_OR_RETURN(const std::string name, NameOfStore(task, source));
  PB_ASSIGN_OR_RETURN(const OpenedSource opened,
                      OpenSource(context, task, name, source, BytesOfFiles(context, volume.files)));
  TaskOutput output;
  if (!opened.there) {
    protocol::TaskSpec make = task.Part("ingest.volume", "volume");
    make.weight = std::max<std::uint64_t>(1, opened.outcome.source_bytes);
    make.resources.memory_bytes =
        TaskMemoryBytes(volume.voxel_bytes, task.settings.spacing.has_value());
    output.spawned.push_back(std::move(make));
  }
  output.result =
      DumpJson({{"slide", task.slide}, {"levels", 0}, {"shards", opened.there ? 0 : 1}});
  return output;
}

StatusOr<TaskOutput> RunIngestVolume(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(IngestTask task, OpenIngestTask(context));
  PB_ASSIGN_OR_RETURN(const auto planned, PlannedVolumeOf(context, task));
  if (!planned) return Internal("ingest volume: it is not in the plan");
  task.modality = planned->modality;
  task.settings.repair = planned->repair;
  PB_ASSIGN_OR_RETURN(SlideOutcome outcome, LoadOutcome(task));
  PB_ASSIGN_OR_RETURN(const Digest source, Digest::FromHex(outcome.source_sha256));
  PB_ASSIGN_OR_RETURN(const std::string name, NameOfStore(task, source));
  PB_ASSIGN_OR_RETURN(const bool there, AdoptFinishedStore(context, task, name, outcome));
  if (there) return EndSource(context, task, outcome);
  PB_ASSIGN_OR_RETURN(const Volume volume, ReadSource(context, task, *planned, source));
  PB_RETURN_IF_ERROR(WriteAndPublish(context, task, name, volume, outcome));
  PB_ASSIGN_OR_RETURN(TaskOutput output, EndSource(context, task, outcome));
  output.progress_bytes = volume.voxels.size();
  return output;
}

}  // namespace patchbay::workers
