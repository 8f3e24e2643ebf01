#include "workers/jobs/ingest/ingest_volume.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/ingest_publish.h"
#include "workers/jobs/ingest/volume_attributes.h"
#include "workers/jobs/ingest/volume_resample.h"
#include "workers/jobs/staged/own_table.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/mask_files.h"
#include "workers/jobs/task/task.h"
#include "workers/jobs/task/volume_writer.h"
#include "workers/sources/volumes/channel_grid.h"
#include "workers/sources/volumes/dicom_volume.h"
#include "workers/sources/volumes/volume.h"
#include "workers/sources/volumes/voxel_values.h"

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

constexpr std::size_t kMaxVolumeFileBytes = 64u << 20;
/// Value of voxels that the first channel has and a channel in Hounsfield units has not.
constexpr double kOutsideHu = -1024;

/// The "#" before the series in a source that names a folder and a series; npos otherwise.
std::size_t SeriesMark(const Folders& allowed, const std::string& source) {
  return Exists(allowed, source) ? std::string::npos : source.rfind('#');
}

/// The store's name. Under keep_names it is taken from the file; for a series of a folder, which
/// may have many, from the folder and the content's digest; for channels from the first.
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

Status WriteVerdict(const IngestTask& task, const PlannedChannel& channel,
                    const DicomSeries& series, const Judgement& judgement) {
  const std::string& source = channel.source;
  const std::string folder = source.substr(0, SeriesMark(task.folders.allowed, source));
  std::string files;
  for (const SliceRef& slice : judgement.at_fault) {
    files += StrCat(files.empty() ? "" : "; ", series.NameOf(slice, folder));
  }
  return WriteVerdicts(task.folders,
                       {{source, std::string(NameOf(judgement.verdict)), judgement.ReasonAndWay(),
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

/// The digests of an image's channels, and of all of them.
struct SourceDigests {
  std::vector<Digest> channels;
  Digest all;
};

/// All: the digest of the one file of the channels, else of their names and digests in order.
StatusOr<SourceDigests> DigestsOf(TaskContext& context,
                                  const std::vector<PlannedChannel>& channels) {
  SourceDigests digests;
  std::string text = "patchbay channels 1\n";
  for (const PlannedChannel& channel : channels) {
    const bool is_known = channel.number && !digests.channels.empty();
    PB_ASSIGN_OR_RETURN(const Digest own, is_known ? StatusOr<Digest>(digests.channels.front())
                                                   : SourceDigest(context, channel));
    digests.channels.push_back(own);
    text += StrCat(own.Hex(), " ", channel.name, "\n");
  }
  const bool is_one_file = channels.size() == 1 || channels.front().number;
  digests.all = is_one_file ? digests.channels.front() : Sha256Of(text);
  return digests;
}

/// The channels; of a volume without any, itself.
std::vector<PlannedChannel> ChannelsOf(const IngestTask& task, const PlannedImage& image) {
  if (!image.channels.empty()) return image.channels;
  return {PlannedChannel{static_cast<const PlannedVolume&>(image), "", task.Source()}};
}

/// The facts that stores are compared by, beside their source.
void TakeFacts(const PlannedImage& image, IngestTask& task) {
  task.settings.repair = image.repair;
  for (const PlannedChannel& channel : image.channels) task.channels.push_back(channel.name);
}

Status AboutChannel(const Status& status, const PlannedChannel& channel) {
  if (status.ok() || channel.name.empty()) return status;
  return Annotate(status, StrCat("channel '", channel.name, "'"));
}

Status JudgeVolume(TaskContext& context, const IngestTask& task, const PlannedChannel& volume) {
  if (volume.format != VolumeFormat::kDicom) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const DicomSeries series, OpenPlanned(context, volume));
  const Judgement judgement = Judge(series);
  PB_RETURN_IF_ERROR(WriteVerdict(task, volume, series, judgement));
  PB_ASSIGN_OR_RETURN(const GeometryPolicy policy, GeometryPolicyFromName(task.settings.geometry));
  return WithAdvice(CheckGeometry(judgement, policy), "OUT/verdicts.csv names the files");
}

/// The failure of reading a series, which the verdicts then hold: with the file named where one
/// slice is damaged, and that it is no CT where only its voxels told.
Status RecordFailure(TaskContext& context, const IngestTask& task, const PlannedChannel& volume,
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
    PB_RETURN_IF_ERROR(WriteVerdict(task, volume, series, judgement));
    return failure;
  }
  if (*slice >= judgement.order.size()) return failure;
  judgement.verdict = Verdict::kNotAVolume;
  judgement.reason = std::string(MessageOf(failure));
  judgement.at_fault = {judgement.order[*slice]};
  PB_RETURN_IF_ERROR(WriteVerdict(task, volume, series, judgement));
  return WithAdvice(failure, "OUT/verdicts.csv names the file");
}

Status PublishVolume(TaskContext& context, const IngestTask& task, const std::string& name,
                     const std::vector<ReadChannel>& channels, SlideOutcome& outcome) {
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, task.Staging(), 0700));
  PB_ASSIGN_OR_RETURN(const auto lease, LeaseFolder::Make(context, task.Staging()));
  std::vector<VolumeRow> rows;
  for (const ReadChannel& channel : channels) {
    rows.emplace_back(
        [&volume = channel.volume](const Point& at, std::int64_t count, std::byte* out) {
          const std::size_t element = SizeOf(volume.dtype);
          const auto from = static_cast<std::size_t>(IndexOf(volume.size, at)) * element;
          std::memcpy(out, volume.voxels.data() + from, static_cast<std::size_t>(count) * element);
        });
  }
  const auto done = [&context](double) { return StepOf(context).ok(); };
  PB_ASSIGN_OR_RETURN(const zarr::ImageStoreSpec spec,
                      VolumeSpecOf(context, task, channels, outcome));
  PB_RETURN_IF_ERROR(zarr::Validate(spec.settings));
  const std::string store = lease->File("store");
  PB_ASSIGN_OR_RETURN(const WrittenVolume written,
                      WriteVolumeStore(context.allowed, store, spec, rows, done));
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

/// Reads the volume in the orientation and geometry of the settings.
StatusOr<Volume> ReadSource(TaskContext& context, const IngestTask& task,
                            const PlannedChannel& planned) {
  ReadVolumeOptions options;
  options.number = planned.number;
  PB_ASSIGN_OR_RETURN(options.geometry, GeometryPolicyFromName(task.settings.geometry));
  options.is_canonical = task.settings.orientation == "canonical";
  PB_ASSIGN_OR_RETURN(options.repair, RepairOf(planned));
  StatusOr<Volume> volume =
      ReadVolume(context.allowed, planned.format, planned.files, options, ProgressOf(context));
  if (!volume.ok()) return RecordFailure(context, task, planned, volume.status());
  PB_RETURN_IF_ERROR(ReplaceOrRefuse(task.settings.nan, *volume));
  return volume;
}

/// Puts the channel where the first one is.
Status PlaceChannel(TaskContext& context, const ReadChannel& first, ReadChannel& channel) {
  PB_ASSIGN_OR_RETURN(const Repairs rules, ParseRepairs(channel.planned->repair));
  PB_RETURN_IF_ERROR(CheckSamePlace(first.volume, rules, channel.volume));
  const double outside = channel.MayBeHu() ? kOutsideHu : 0;
  return ResampleOnto(first.volume, outside, ProgressOf(context), channel.volume);
}

/// The channels on the grid of the first, of one type and with the spacing of the settings; fails
/// if their files no longer have the digest `source`.
StatusOr<std::vector<ReadChannel>> ReadChannels(TaskContext& context, const IngestTask& task,
                                                const std::vector<PlannedChannel>& planned,
                                                const Digest& source) {
  std::vector<ReadChannel> channels;
  for (const PlannedChannel& one : planned) {
    auto volume = ReadSource(context, task, one);
    if (!volume.ok()) return AboutChannel(volume.status(), one);
    channels.push_back({&one, "", *std::move(volume)});
    if (channels.size() == 1) continue;
    PB_RETURN_IF_ERROR(AboutChannel(PlaceChannel(context, channels.front(), channels.back()), one));
  }
  PB_ASSIGN_OR_RETURN(const SourceDigests after, DigestsOf(context, planned));
  if (after.all != source) {
    return FailedPrecondition("ingest volume: its files changed while it was read");
  }
  const bool has_float = std::any_of(channels.begin(), channels.end(), [](const ReadChannel& one) {
    return one.volume.dtype == DType::kFloat32;
  });
  for (std::size_t i = 0; i < channels.size(); ++i) {
    Volume& volume = channels[i].volume;
    channels[i].source_sha256 = after.channels[i].Hex();
    if (task.settings.spacing) {
      PB_RETURN_IF_ERROR(ResampleToSpacing(task.settings, ProgressOf(context), volume));
    }
    if (has_float) MakeFloat(volume);
  }
  return channels;
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

Status SavePlannedImage(const IngestTask& task, const PlannedImage& image) {
  return ReplaceFile(task.folders.allowed, task.VolumeFile(), AsBytes(DumpJson(JsonOf(image))),
                     0600);
}

StatusOr<std::optional<PlannedImage>> PlannedImageOf(TaskContext& context, const IngestTask& task) {
  constexpr std::string_view kWhat = "planned volume";
  const auto text = ReadFile(context.allowed, task.VolumeFile(), kMaxVolumeFileBytes);
  if (absl::IsNotFound(text.status())) return std::optional<PlannedImage>();
  PB_RETURN_IF_ERROR(text.status());
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(*text, kWhat, kMaxVolumeFileBytes));
  PB_ASSIGN_OR_RETURN(PlannedImage image, FromJson<PlannedImage>(json, kWhat));
  const auto may_read = [&](std::vector<std::string>& files) -> Status {
    for (std::string& file : files) {
      PB_ASSIGN_OR_RETURN(file, context.MayRead(file));
      PB_RETURN_IF_ERROR(StepOf(context));
    }
    return absl::OkStatus();
  };
  PB_RETURN_IF_ERROR(may_read(image.files));
  for (PlannedChannel& channel : image.channels) PB_RETURN_IF_ERROR(may_read(channel.files));
  return std::optional(std::move(image));
}

StatusOr<TaskOutput> OpenVolume(TaskContext& context, IngestTask& task, const PlannedImage& image) {
  const std::vector<PlannedChannel> channels = ChannelsOf(task, image);
  for (const PlannedChannel& channel : channels) {
    PB_RETURN_IF_ERROR(AboutChannel(JudgeVolume(context, task, channel), channel));
  }
  TakeFacts(image, task);
  PB_ASSIGN_OR_RETURN(const SourceDigests sources, DigestsOf(context, channels));
  PB_ASSIGN_OR_RETURN(const std::string name, NameOfStore(task, sources.all));
  PB_ASSIGN_OR_RETURN(const OpenedSource opened, OpenSource(context, task, name, sources.all,
                                                            BytesOfFiles(context, image.files)));
  TaskOutput output;
  if (!opened.there) {
    protocol::TaskSpec make = task.Part("ingest.volume", "volume");
    make.weight = std::max<std::uint64_t>(1, opened.outcome.source_bytes);
    make.resources.memory_bytes =
        TaskMemoryBytes(image.voxel_bytes, task.settings.spacing || channels.size() > 1);
    output.spawned.push_back(std::move(make));
  }
  output.result =
      DumpJson({{"slide", task.slide}, {"levels", 0}, {"shards", opened.there ? 0 : 1}});
  return output;
}

StatusOr<TaskOutput> RunIngestVolume(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(IngestTask task, OpenIngestTask(context));
  PB_ASSIGN_OR_RETURN(const auto planned, PlannedImageOf(context, task));
  if (!planned) return Internal("ingest volume: it is not in the plan");
  TakeFacts(*planned, task);
  PB_ASSIGN_OR_RETURN(SlideOutcome outcome, LoadOutcome(task));
  PB_ASSIGN_OR_RETURN(const Digest source, Digest::FromHex(outcome.source_sha256));
  PB_ASSIGN_OR_RETURN(const std::string name, NameOfStore(task, source));
  PB_ASSIGN_OR_RETURN(const bool there, AdoptFinishedStore(context, task, name, outcome));
  if (there) return EndSource(context, task, outcome);
  const std::vector<PlannedChannel> all = ChannelsOf(task, *planned);
  PB_ASSIGN_OR_RETURN(const std::vector<ReadChannel> channels,
                      ReadChannels(context, task, all, source));
  PB_RETURN_IF_ERROR(PublishVolume(context, task, name, channels, outcome));
  PB_ASSIGN_OR_RETURN(TaskOutput output, EndSource(context, task, outcome));
  for (const ReadChannel& one : channels) output.progress_bytes += one.volume.voxels.size();
  return output;
}

}  // namespace patchbay::workers
