#include "workers/jobs/ingest/volume.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>

#include <sys/stat.h>

#include "ops/zscore/body_mask.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/format/zarr/publish.h"
#include "runtime/model/plan/body_histogram.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/publish.h"
#include "workers/jobs/ingest/volume_spacing.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/jobs/task/identity.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/mask_files.h"
#include "workers/jobs/task/own_table.h"
#include "workers/jobs/task/progress.h"
#include "workers/jobs/task/volume_writer.h"
#include "workers/sources/volumes/dicom_volume.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kShardSide = 256;
constexpr std::size_t kMaxVolumeFileBytes = 64u << 20;
constexpr std::size_t kMaxVerdictsBytes = 256u << 20;
constexpr double kFillHu = -1024;

/// The "#" before the series in a source that names a folder and a series; npos otherwise.
std::size_t SeriesMark(const std::string& source) {
  return std::filesystem::exists(source) ? std::string::npos : source.rfind('#');
}

/// Under keep_names after the file, or after the folder and the content: a folder has many series.
StatusOr<std::string> NameOfStore(const IngestManifest& manifest, const std::string& source,
                                  const Digest& digest) {
  std::string name = std::filesystem::path(source).filename().string();
  const std::size_t series = SeriesMark(source);
  if (series != std::string::npos) {
    name = StrCat(std::filesystem::path(source.substr(0, series)).filename().string(), "-",
                  digest.Hex().substr(0, 8));
  }
  for (const char* ending : {".gz", ".nii", ".nrrd", ".mha", ".dcm"}) {
    if (name.ends_with(ending)) name.resize(name.size() - std::strlen(ending));
  }
  return StoreName(manifest, name + ".volume", digest);
}

/// A line of verdicts.csv but for its source.
struct VerdictRow {
  std::string verdict, reason;
  std::size_t slices = 0;
  std::string files;
};

/// Replaces the lines of these sources.
Status WriteVerdicts(const IngestFolders& folders,
                     const std::map<std::string, VerdictRow>& verdicts) {
  const OutputLock lock(folders.allowed, folders.out);
  const std::string path = folders.out + "/verdicts.csv";
  std::map<std::string, std::string> rows;
  const auto existing = ReadFile(folders.allowed, path, kMaxVerdictsBytes);
  if (existing.ok()) {
    for (const auto& row : ParseCsv(*existing)) {
      if (row.size() != 5 || row[0] == "source") continue;
      std::vector<std::string> fields;
      for (const std::string& field : row) fields.push_back(CsvField(field));
      rows[row[0]] = CsvRow(fields);
    }
  }
  for (const auto& [source, row] : verdicts) {
    rows[source] = CsvRow({CsvField(source), CsvField(row.verdict), CsvField(row.reason),
                           std::to_string(row.slices), CsvField(row.files)});
  }
  std::string text(kVerdictsHeader);
  for (const auto& [name, row] : rows) text += row;
  return WriteFileDurably(folders.allowed, path, AsBytes(text), 0600);
}

Status WriteVerdict(const IngestFolders& folders, const std::string& source,
                    const DicomSeries& series, const Judgement& judgement) {
  const std::string folder = source.substr(0, SeriesMark(source));
  std::string files;
  for (const SliceRef& slice : judgement.at_fault) {
    files += StrCat(files.empty() ? "" : "; ", series.NameOf(slice, folder));
  }
  return WriteVerdicts(folders, {{source,
                                  {std::string(NameOf(judgement.verdict)), judgement.reason,
                                   judgement.order.size(), std::move(files)}}});
}

/// One volume of a job as its tasks see it.
struct VolumeInWork {
  IngestManifest manifest;
  std::int64_t index = 0;
  const std::string& Source() const { return manifest.sources[static_cast<std::size_t>(index)]; }
};

StatusOr<VolumeInWork> WorkOf(TaskContext& context, const IngestFolders& folders) {
  VolumeInWork work;
  PB_ASSIGN_OR_RETURN(work.manifest, LoadManifest(folders));
  PB_ASSIGN_OR_RETURN(work.index, SlideNumberOf(context, folders, work.manifest));
  return work;
}

Status JudgeVolume(TaskContext& context, const IngestFolders& folders, const VolumeInWork& work,
                   const PlannedVolume& volume) {
  if (volume.format != VolumeFormat::kDicom) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const DicomSeries series,
                      OpenSeries(context.allowed, volume.files, ProgressOf(context)));
  const Judgement judgement = Judge(series);
  PB_RETURN_IF_ERROR(WriteVerdict(folders, work.Source(), series, judgement));
  PB_ASSIGN_OR_RETURN(const GeometryPolicy policy,
                      GeometryPolicyFromName(work.manifest.settings.geometry));
  const Status fits = CheckGeometry(judgement, policy);
  if (fits.ok()) return fits;
  return absl::FailedPreconditionError(
      StrCat(MessageOf(fits), "; OUT/verdicts.csv names the files"));
}

/// The failure of reading a series, which the verdicts then hold: with the file named where one
/// slice is damaged, and that it is no CT where only its voxels told.
Status RecordFailure(TaskContext& context, const IngestFolders& folders, const VolumeInWork& work,
                     const PlannedVolume& volume, const Status& failure) {
  const auto slice = SliceAtFault(failure);
  const bool is_damaged = slice && absl::IsDataLoss(failure);
  const bool is_refused =
      absl::IsFailedPrecondition(failure) && volume.format == VolumeFormat::kDicom;
  if (!is_damaged && !is_refused) return failure;
  PB_ASSIGN_OR_RETURN(const DicomSeries series,
                      OpenSeries(context.allowed, volume.files, ProgressOf(context)));
  Judgement judgement = Judge(series);
  if (is_refused) {
    judgement.verdict = Verdict::kNotCt;
    judgement.reason = std::string(MessageOf(failure));
    PB_RETURN_IF_ERROR(WriteVerdict(folders, work.Source(), series, judgement));
    return failure;
  }
  if (*slice >= judgement.order.size()) return failure;
  judgement.verdict = Verdict::kNotAVolume;
  judgement.reason = std::string(MessageOf(failure));
  judgement.at_fault = {judgement.order[*slice]};
  PB_RETURN_IF_ERROR(WriteVerdict(folders, work.Source(), series, judgement));
  return Status(failure.code(), StrCat(MessageOf(failure), "; OUT/verdicts.csv names the file"));
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
  store.codec =
      settings.codec == "lz4" ? zarr::StoreCodec::kBloscLz4 : zarr::StoreCodec::kBloscZstd;
  store.codec_level = static_cast<int>(settings.codec_level);
  store.fill_value = kFillHu;
  return store;
}

/// Of what lies in the body: what zscore is taken from. ResourceExhausted without the memory.
StatusOr<plan::BodyHistogram> BodyHistogramOf(TaskContext& context, const Volume& volume) {
  const std::span hu(reinterpret_cast<const std::int16_t*>(volume.voxels.data()),
                     static_cast<std::size_t>(volume.size.Pixels()));
  const auto may_take = [](std::uint64_t bytes) {
    return CheckMemoryFits("find the body", bytes, AvailableMemory());
  };
  PB_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> body,
                      ops::BodyMask(hu, volume.size, may_take, ProgressOf(context)));
  plan::BodyHistogram histogram;
  for (std::size_t i = 0; i < hu.size(); ++i) {
    if (body[i] != 0) histogram.Add(hu[i]);
  }
  return histogram;
}

StatusOr<zarr::ImageStoreSpec> SpecOf(TaskContext& context, const VolumeInWork& work,
                                      const Volume& volume, const SlideOutcome& outcome) {
  const IngestSettings& settings = work.manifest.settings;
  zarr::ImageStoreSpec spec;
  spec.settings = StoreSettings(settings, volume.dtype);
  spec.levels = VolumeLevels(volume.size, spec.settings);
  spec.spacing = volume.SpacingMm();
  Json& a = spec.attributes;
  a["source_sha256"] = outcome.source_sha256;
  a["source_kind"] = volume.kind;
  a["source_bytes"] = outcome.source_bytes;
  a["codec_plan"] = ParseJson(settings.Canonical(), "settings").value();
  a["affine_lps"] = ToJson(LpsOf(volume.affine));
  a["affine_ras"] = ToJson(RasOf(volume.affine));
  a["orientation"] = OrientationOf(volume.affine);
  a["transform_log"] = volume.log;
  a["acquisition"] = volume.facts;
  a["deid_profile"] = "allow-list";
  if (!volume.warnings.empty()) a["warnings"] = volume.warnings;
  const ValueRange range = RangeOf(volume);
  a["value_range"] = {{"min", range.min}, {"max", range.max}, {"mean", range.mean}};
  if (volume.dtype == DType::kInt16) {
    PB_ASSIGN_OR_RETURN(const plan::BodyHistogram histogram, BodyHistogramOf(context, volume));
    a["body_histogram"] = histogram.ToJson();
  }
  if (!volume.slice_positions.empty()) a["slice_table"] = SliceTable(volume);
  const Json identity = IdentityOf(work.manifest.pseudonym_key, volume.identity);
  if (!identity.empty()) a["identity"] = identity;
  return spec;
}

Status WriteAndPublish(TaskContext& context, const IngestFolders& folders, const VolumeInWork& work,
                       const std::string& name, const Volume& volume, SlideOutcome& outcome) {
  const std::string staging = folders.Staging(outcome.slide_key);
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, staging, 0700));
  PB_ASSIGN_OR_RETURN(const auto lease, LeaseFolder::Make(context, staging));
  const std::size_t element = SizeOf(volume.dtype);
  const auto row = [&](const Point& at, std::int64_t count, std::byte* out) {
    std::memcpy(out,
                volume.voxels.data() + static_cast<std::size_t>(IndexOf(volume.size, at)) * element,
                static_cast<std::size_t>(count) * element);
  };
  const auto done = [&context](double) {
    context.AddProgress();
    return context.CheckCancelled().ok();
  };
  PB_ASSIGN_OR_RETURN(const zarr::ImageStoreSpec spec, SpecOf(context, work, volume, outcome));
  PB_RETURN_IF_ERROR(zarr::Validate(spec.settings));
  const std::string store = lease->File("store");
  PB_ASSIGN_OR_RETURN(const WrittenVolume written,
                      WriteVolumeStore(context.allowed, store, spec, row, done));
  PB_ASSIGN_OR_RETURN(const auto lock, StagingLock::Take(context, staging));
  PB_ASSIGN_OR_RETURN(const bool there,
                      AdoptFinishedStore(context, folders, name, work.manifest.settings, outcome));
  if (there) return absl::OkStatus();
  PB_RETURN_IF_ERROR(zarr::PublishStore(context.allowed, store, StrCat(folders.out, "/", name),
                                        [&context] { context.AddProgress(); }));
  outcome.digest = written.roots.bytes.Hex();
  outcome.pixel_digest = written.roots.pixels.Hex();
  outcome.stored_bytes = StoredBytesOf(context, StrCat(folders.out, "/", name));
  outcome.store = name;
  return absl::OkStatus();
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
  return absl::InvalidArgumentError(StrCat("read volume: ", text, ", the first at (z, y, x) = (",
                                           at.z, ", ", at.y, ", ", at.x,
                                           "): --nan VALUE stores VALUE in their places"));
}

StatusOr<TaskOutput> MakeVolume(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const IngestFolders folders, FoldersOf(context));
  PB_ASSIGN_OR_RETURN(const VolumeInWork work, WorkOf(context, folders));
  PB_ASSIGN_OR_RETURN(const auto planned, PlannedVolumeOf(context, folders));
  if (!planned) return absl::InternalError("ingest volume: the plan says nothing of it");
  PB_ASSIGN_OR_RETURN(SlideOutcome outcome, LoadOutcome(folders, work.index));
  PB_ASSIGN_OR_RETURN(const Digest source, Digest::FromHex(outcome.source_sha256));
  PB_ASSIGN_OR_RETURN(const std::string name, NameOfStore(work.manifest, work.Source(), source));
  PB_ASSIGN_OR_RETURN(const bool there,
                      AdoptFinishedStore(context, folders, name, work.manifest.settings, outcome));
  TaskOutput output;
  if (!there) {
    ReadVolumeOptions options;
    PB_ASSIGN_OR_RETURN(options.geometry, GeometryPolicyFromName(work.manifest.settings.geometry));
    options.is_canonical = work.manifest.settings.orientation == "canonical";
    StatusOr<Volume> read =
        ReadVolume(context.allowed, planned->format, planned->files, options, ProgressOf(context));
    if (!read.ok()) return RecordFailure(context, folders, work, *planned, read.status());
    Volume volume = *std::move(read);
    // What was hashed is what was read.
    PB_ASSIGN_OR_RETURN(const Digest after, DigestOfFiles(context, planned->files));
    if (after != source) {
      return absl::FailedPreconditionError("ingest volume: its files changed while it was read");
    }
    const IngestSettings& settings = work.manifest.settings;
    PB_RETURN_IF_ERROR(ReplaceOrRefuse(settings.nan, volume));
    if (settings.spacing) {
      PB_RETURN_IF_ERROR(ResampleTo(*settings.spacing, static_cast<int>(settings.spacing_order),
                                    ProgressOf(context), volume));
    }
    PB_RETURN_IF_ERROR(WriteAndPublish(context, folders, work, name, volume, outcome));
    output.progress_bytes = volume.voxels.size();
  }
  PB_RETURN_IF_ERROR(SaveOutcome(folders, work.index, outcome));
  RemoveTree(context, folders.Staging(outcome.slide_key)).IgnoreError();
  output.result = DumpJson({{"slide", work.index},
                            {"store", outcome.store},
                            {"digest", outcome.digest},
                            {"pixel_digest", outcome.pixel_digest},
                            {"source_bytes", outcome.source_bytes},
                            {"stored_bytes", outcome.stored_bytes}});
  return output;
}

/// What a volume takes while it is read, brought to its spacing (in float) and written, about. A
/// power of two: volumes of many sizes have few different needs. At most what may be used here.
std::uint64_t TaskMemoryBytes(std::uint64_t voxel_bytes, bool resamples) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50, kBeside = 64u << 20;
  const std::uint64_t bytes = std::min(voxel_bytes, kMost) * (resamples ? 12 : 4) + kBeside;
  return std::min(std::bit_ceil(bytes), OwnMemoryLimit().bytes / 100 * kMemoryUsePercent);
}

}  // namespace

Status RecordMasks(const IngestFolders& folders, const std::map<std::string, std::string>& masks) {
  if (masks.empty()) return absl::OkStatus();
  std::map<std::string, VerdictRow> verdicts;
  for (const auto& [path, reason] : masks) {
    verdicts[path] = {std::string(kMaskVerdict), StrCat(reason, ": left out of its folder"), 0, ""};
  }
  return WriteVerdicts(folders, verdicts);
}

Status SavePlannedVolume(const IngestFolders& folders, std::int64_t slide,
                         const PlannedVolume& volume) {
  PB_RETURN_IF_ERROR(MakeDirectories(folders.allowed, folders.Job() + "/volumes", 0700));
  const Json json = {{"format", NameOf(volume.format)},
                     {"files", volume.files},
                     {"voxel_bytes", volume.voxel_bytes}};
  return ReplaceFile(folders.allowed, folders.VolumeFile(slide), AsBytes(DumpJson(json)), 0600);
}

StatusOr<std::optional<PlannedVolume>> PlannedVolumeOf(TaskContext& context,
                                                       const IngestFolders& folders) {
  constexpr std::string_view kWhat = "planned volume";
  PB_ASSIGN_OR_RETURN(const std::int64_t slide, JsonInt(context.payload, "slide", kWhat));
  const auto text = ReadFile(context.allowed, folders.VolumeFile(slide), kMaxVolumeFileBytes);
  if (absl::IsNotFound(text.status())) return std::optional<PlannedVolume>();
  PB_RETURN_IF_ERROR(text.status());
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(*text, kWhat, kMaxVolumeFileBytes));
  PlannedVolume volume;
  PB_ASSIGN_OR_RETURN(const std::string format, JsonString(json, "format", kWhat));
  PB_ASSIGN_OR_RETURN(volume.format, VolumeFormatFromName(format));
  PB_ASSIGN_OR_RETURN(const std::int64_t bytes, JsonInt(json, "voxel_bytes", kWhat));
  volume.voxel_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> files, ManifestPaths(json, "files"));
  for (const std::string& file : files) {
    PB_ASSIGN_OR_RETURN(std::string path, context.MayRead(file));
    volume.files.push_back(std::move(path));
    PB_RETURN_IF_ERROR(StepOf(context));
  }
  return std::optional(std::move(volume));
}

StatusOr<TaskOutput> OpenVolume(TaskContext& context, const IngestFolders& folders,
                                const PlannedVolume& volume) {
  PB_ASSIGN_OR_RETURN(const VolumeInWork work, WorkOf(context, folders));
  PB_RETURN_IF_ERROR(JudgeVolume(context, folders, work, volume));
  PB_ASSIGN_OR_RETURN(const Digest source, DigestOfFiles(context, volume.files));
  SlideOutcome outcome;
  outcome.source_sha256 = source.Hex();
  outcome.source_bytes = BytesOfFiles(context, volume.files);
  PB_ASSIGN_OR_RETURN(const std::string name, NameOfStore(work.manifest, work.Source(), source));
  outcome.slide_key = SlideKey(source, work.manifest.settings, name);
  PB_ASSIGN_OR_RETURN(const bool there,
                      AdoptFinishedStore(context, folders, name, work.manifest.settings, outcome));
  PB_RETURN_IF_ERROR(SaveOutcome(folders, work.index, outcome));
  TaskOutput output;
  if (!there) {
    protocol::TaskSpec task;
    task.op = "ingest.volume";
    task.payload = DumpJson(
        {{"job_key", folders.job_key}, {"slide", work.index}, {"slide_key", outcome.slide_key}});
    task.group = static_cast<std::uint32_t>(work.index) + 1;
    task.label = StrCat("slide ", work.index, " volume");
    task.weight = std::max<std::uint64_t>(1, outcome.source_bytes);
    task.resources.memory_bytes =
        TaskMemoryBytes(volume.voxel_bytes, work.manifest.settings.spacing.has_value());
    output.spawned.push_back(std::move(task));
  }
  output.result = DumpJson({{"slide", work.index}, {"levels", 0}, {"shards", there ? 0 : 1}});
  return output;
}

StatusOr<TaskOutput> RunIngestVolume(TaskContext& context) { return MakeVolume(context); }

}  // namespace patchbay::workers
