// The measurements for `--codec auto`: all sources are opened, some squares of some of them
// decoded, encoded and read in patches, and the disks probed; all of it in seconds.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "ops/stain_normalize/stain_histogram.h"
#include "runtime/core/clock.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/jobs/codec_choice.h"
#include "runtime/model/source/channel_names.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/disk_probe.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/ingest/codec_sample.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/ingest_slide.h"
#include "workers/jobs/ingest/ingest_sources.h"
#include "workers/jobs/task/folder_tree.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/dicom_slide.h"
#include "workers/sources/tile_mosaic.h"

namespace patchbay::workers {
namespace {

/// Slides, and squares of all of them together, that are decoded. Larger means steadier figures.
constexpr std::size_t kSampledSlides = 8, kSquares = 48;
/// About the side of a square, pixels; whole tiles.
constexpr std::int64_t kSquareSide = 1024;
/// No square begins later.
constexpr std::int64_t kMostNs = 10'000'000'000;
/// Boxes of a volume, of so many chunks a side.
constexpr int kBoxes = 8;
constexpr std::int64_t kBoxChunks = 3;
/// A stream's work on a patch beside reading it (float16, normalised, handed over) by that of the
/// digest of its pixels. Measured: 0.37 ms of 512 x 512, on a machine that hashes them in 0.25.
constexpr double kBesideReading = 1.5;
/// An ingest by the steps that are measured: it also copies from and to files, averages levels, and
/// finds its pixels outside the caches. Measured: 1.25 with kept tiles, 1.23 with zstd.
constexpr double kWholeIngest = 1.25;
/// A larger volume is not read for the sample.
constexpr std::uint64_t kMostVolumeBytes = std::uint64_t{512} << 20;
/// Bytes stored of a pyramid of 8 voxels to 1, by those of its first level.
constexpr double kVolumePyramid = 8.0 / 7;

/// The slides or the volumes of a job, and the sample of them.
struct KindSums {
  double source_bytes = 0;
  /// Pixels of the stores: of all levels, of those that the source has, of the finest.
  double raw_bytes = 0, own_bytes = 0, finest_bytes = 0;
  double patches = 0;  ///< in a pass over the finest level
  // The sample:
  double decoded_bytes = 0, decode_ns = 0;  ///< pixels; of reading them from the source
  double hash_ns = 0, colours_ns = 0;       ///< digests and colours of these pixels
  double tile_bytes = 0, keep_ns = 0;       ///< their tiles; of storing and checking these
  PatchCost of_source;                      ///< patches out of the source's tiles
  std::unique_ptr<CodecSample> lz4, zstd;

  bool IsSampled() const { return lz4 != nullptr && lz4->raw_bytes() > 0; }
};

/// A place in 0..1 along y and x that spreads evenly with `i` (the R2 sequence).
std::pair<double, double> PlaceOf(std::size_t i) {
  const auto n = static_cast<double>(i + 1);
  return {std::fmod(0.5 + n * 0.7548776662466927, 1.0),
          std::fmod(0.5 + n * 0.5698402909980532, 1.0)};
}

std::int64_t CornerOf(double place, std::int64_t whole, std::int64_t side, std::int64_t step) {
  const auto most = std::max<std::int64_t>(0, whole - side);
  return static_cast<std::int64_t>(place * static_cast<double>(most)) / step * step;
}

/// Processor time of the digests of four parts of `bytes`, side by side as ingest hashes chunks.
double HashNs(std::span<const std::byte> bytes) {
  const std::size_t quarter = bytes.size() / 4;
  std::vector<ByteRows> parts;
  for (std::size_t i = 0; i < 4; ++i) {
    parts.push_back({.first = bytes.data() + i * quarter,
                     .row_bytes = i < 3 ? quarter : bytes.size() - 3 * quarter});
  }
  TakeCpuNs();
  (void)Sha256OfEach(parts);
  return TakeCpuNs();
}

class Measurement {
 public:
  Measurement(TaskContext& context, IngestTask task, const FoundSources& sources)
      : context_(context), task_(std::move(task)), sources_(sources) {}

  StatusOr<CodecMeasures> Make() {
    measures_.sources = sources_.names.size();
    for (std::size_t i = 0; i < sources_.names.size(); ++i) {
      PB_RETURN_IF_ERROR(context_.CheckCancelled());
      const auto volume = sources_.volumes.find(i);
      volume == sources_.volumes.end() ? LookAtSlide(i) : LookAtVolume(i, volume->second);
      context_.AddProgress();
    }
    PB_RETURN_IF_ERROR(SampleSlides());
    PB_RETURN_IF_ERROR(SampleVolumes());
    if (!slides_.IsSampled() && !volumes_.IsSampled()) {
      return Annotate(failed_.ok() ? FailedPrecondition("there is none") : failed_,
                      "--codec auto: no source can be read to be measured");
    }
    for (const char* codec : {"keep", "lz4", "zstd"}) {
      if (codec != std::string_view("keep") || measures_.no_keep.empty()) AddCost(codec);
    }
    PB_RETURN_IF_ERROR(ProbeDisks());
    measures_.memory_bytes = AvailableMemory().bytes;
    return std::move(measures_);
  }

 private:
  StatusOr<IngestSlide> Open(std::size_t i, const char* codec) {
    IngestSlide slide(task_);
    slide.slide = static_cast<std::int64_t>(i);
    slide.settings.codec = codec;
    PB_ASSIGN_OR_RETURN(slide.path, context_.MayRead(slide.Source()));
    const auto tiles = sources_.tiles.find(i);
    if (tiles == sources_.tiles.end()) {
      const auto choice = sources_.choices.find(i);
      if (choice != sources_.choices.end()) slide.settings.choice = choice->second;
      PB_ASSIGN_OR_RETURN(slide.source,
                          OpenChosenSlide(context_.allowed, slide.path, slide.settings.choice));
      return slide;
    }
    PB_ASSIGN_OR_RETURN(slide.source,
                        OpenTileMosaic(context_.allowed, slide.path, tiles->second.files));
    return slide;
  }

  std::uint64_t BytesOf(std::size_t i, const std::string& path) {
    const auto tiles = sources_.tiles.find(i);
    if (tiles == sources_.tiles.end()) return BytesOfSlide(context_, path);
    std::vector<std::string> files;
    for (const std::string& tile : tiles->second.files) files.push_back(StrCat(path, "/", tile));
    return BytesOfFiles(context_, files);
  }

  void CannotKeepAll(std::size_t i, std::string_view why) {
    if (!measures_.no_keep.empty()) return;
    measures_.no_keep =
        StrCat(std::filesystem::path(sources_.names[i]).filename().string(), ": ", why);
  }

  void AddKind(const std::string& kind) {
    if (kinds_.insert(kind).second) measures_.kinds.push_back(kind);
  }

  /// A slide that does not open counts for nothing: its own task says why.
  void LookAtSlide(std::size_t i) {
    auto slide = Open(i, "lz4");
    const Status settled = slide.ok() ? SettleStore(*slide) : slide.status();
    if (!settled.ok()) {
      failed_.Update(settled);
      return;
    }
    AddKind(slide->source->layout().kind);
    for (const OutputLevel& level : slide->levels) {
      if (!level.stored) continue;
      const auto bytes = static_cast<double>(level.size.Pixels() * slide->store.PixelBytes());
      slides_.raw_bytes += bytes;
      slides_.own_bytes += level.from_source ? bytes : 0;
    }
    const Extent finest = StoredSizes(slide->levels).front();
    slides_.finest_bytes += static_cast<double>(finest.Pixels() * slide->store.PixelBytes());
    slides_.patches += static_cast<double>(finest.Pixels()) /
                       static_cast<double>(SampledPatch(slide->store).Pixels());
    AddSourceBytes(BytesOf(i, slide->path), slides_);
    slide->settings.codec = "keep";
    const Status kept = SettleStore(*slide);
    if (!kept.ok()) CannotKeepAll(i, OutcomeOf(kept).cause);
    readable_.push_back(i);
  }

  void LookAtVolume(std::size_t i, const PlannedVolume& volume) {
    AddKind(StrCat("volume:", NameOf(volume.format)));
    CannotKeepAll(i, "a volume has no tiles");
    const auto voxels = static_cast<double>(volume.voxel_bytes);
    volumes_.raw_bytes += kVolumePyramid * voxels;
    volumes_.own_bytes += voxels;
    volumes_.finest_bytes += voxels;
    std::uint64_t bytes = 0;
    for (const std::string& file : volume.files) {
      bytes += SizeOf(context_.allowed, file).value_or(0);
      context_.AddProgress();
    }
    AddSourceBytes(bytes, volumes_);
  }

  void AddSourceBytes(std::uint64_t bytes, KindSums& sums) {
    measures_.source_bytes += bytes;
    sums.source_bytes += static_cast<double>(bytes);
  }

  Status SampleSlides() {
    if (readable_.empty()) return absl::OkStatus();
    const std::size_t count = std::min(kSampledSlides, readable_.size());
    for (std::size_t n = 0; n < count; ++n) {
      const std::size_t i = readable_[n * readable_.size() / count];
      const Status sampled = SampleSlide(i, n, count);
      if (absl::IsCancelled(sampled)) return sampled;
      failed_.Update(sampled);  // a damaged tile is its own task's failure
    }
    return absl::OkStatus();
  }

  /// Every `count`th square of all, from the `first` on; of a small slide about as many as it has.
  Status SampleSlide(std::size_t i, std::size_t first, std::size_t count) {
    PB_ASSIGN_OR_RETURN(IngestSlide slide, Open(i, "lz4"));
    PB_RETURN_IF_ERROR(SettleStore(slide));
    if (slides_.lz4 == nullptr) PB_RETURN_IF_ERROR(MakeSamples(slide.store, slides_));
    const auto scratch = slide.source->MakeScratch();
    const std::int64_t has =
        StoredSizes(slide.levels).front().Pixels() / (kSquareSide * kSquareSide) + 1;
    const std::size_t end = std::min(kSquares, first + static_cast<std::size_t>(has) * count);
    for (std::size_t n = first; n < end && SteadyNowNs() - begun_ns_ < kMostNs; n += count) {
      PB_RETURN_IF_ERROR(SampleSquare(slide, PlaceOf(n), *scratch));
      PB_RETURN_IF_ERROR(StepOf(context_));
    }
    return absl::OkStatus();
  }

  /// A square of the finest level that is stored, or that it is averaged from.
  Status SampleSquare(const IngestSlide& slide, std::pair<double, double> place,
                      DecodeScratch& scratch) {
    const OutputLevel* level =
        &slide.levels[static_cast<std::size_t>(LevelOfStored(slide.levels, 0))];
    while (!level->from_source) level = &slide.levels[static_cast<std::size_t>(level->parent)];
    const LevelLayout& layout =
        slide.source->layout().levels[static_cast<std::size_t>(level->source_level)];
    const auto side = [](std::int64_t tile) {
      return tile > 2 * kSquareSide ? kSquareSide : (kSquareSide + tile - 1) / tile * tile;
    };
    const std::int64_t height = std::min(side(layout.chunk.y), layout.size.y),
                       width = std::min(side(layout.chunk.x), layout.size.x);
    const Box box =
        Box2D(CornerOf(place.first, layout.size.y, height, layout.chunk.y),
              CornerOf(place.second, layout.size.x, width, layout.chunk.x), height, width);
    PB_RETURN_IF_ERROR(DecodeSquare(slide, level->source_level, box, scratch));
    const Extent patch = SampledPatch(slide.store);
    for (std::int64_t n = 0; n < 2; ++n) {
      // Anywhere against the tiles, as streams read.
      const Box at =
          Box2D(std::min(box.y + 37 + 101 * n, std::max<std::int64_t>(0, layout.size.y - patch.y)),
                std::min(box.x + 71 + 89 * n, std::max<std::int64_t>(0, layout.size.x - patch.x)),
                patch.y, patch.x);
      PB_RETURN_IF_ERROR(ReadPatch(slide, level->source_level, at, scratch));
    }
    return absl::OkStatus();
  }

  TensorView PixelsOf(const IngestSlide& slide, const Box& box) {
    pixels_.resize(static_cast<std::size_t>(box.Pixels() * slide.store.PixelBytes()));
    return ContiguousView<4>(
        pixels_.data(), slide.store.dtype,
        {1, box.height, box.width, static_cast<std::int64_t>(slide.store.channels)});
  }

  Status DecodeSquare(const IngestSlide& slide, int level, const Box& box, DecodeScratch& scratch) {
    const TensorView view = PixelsOf(slide, box);
    TakeCpuNs();
    PB_RETURN_IF_ERROR(slide.source->Fetch(level, box, encoded_));
    const double fetch_ns = TakeCpuNs();
    PB_RETURN_IF_ERROR(slide.source->Decode(encoded_, view, slide.store.fill_value, scratch));
    slides_.decode_ns += fetch_ns + TakeCpuNs();
    slides_.decoded_bytes += static_cast<double>(pixels_.size());
    slides_.hash_ns += HashNs(pixels_);
    if (HasColours(slide)) PB_RETURN_IF_ERROR(colours_.Add(view));
    slides_.colours_ns += TakeCpuNs();
    KeepTiles(fetch_ns);
    PB_RETURN_IF_ERROR(slides_.lz4->Add(view));
    return slides_.zstd->Add(view);
  }

  /// The tiles just fetched, as they go into a store: the digest of each, of the file and of its
  /// check.
  void KeepTiles(double fetch_ns) {
    TakeCpuNs();
    zarr::ShardPiece piece;
    for (const EncodedPiece& tile : encoded_.pieces) {
      const auto bytes =
          std::span(std::as_const(encoded_.bytes)).subspan(tile.begin, tile.size_bytes);
      zarr::AppendEncoded(bytes, Sha256Of(bytes), piece);
    }
    for (int reading = 0; reading < 2; ++reading) (void)Sha256Of(piece.bytes);
    slides_.keep_ns += fetch_ns + TakeCpuNs();
    slides_.tile_bytes += static_cast<double>(piece.bytes.size());
  }

  Status ReadPatch(const IngestSlide& slide, int level, const Box& box, DecodeScratch& scratch) {
    const TensorView view = PixelsOf(slide, box);
    TakeCpuNs();
    PB_RETURN_IF_ERROR(slide.source->Fetch(level, box, encoded_));
    PB_RETURN_IF_ERROR(slide.source->Decode(encoded_, view, slide.store.fill_value, scratch));
    PatchCost& patch = slides_.of_source;
    patch.ns += TakeCpuNs();
    patch.patches += 1;
    for (const EncodedPiece& tile : encoded_.pieces) {
      patch.bytes += static_cast<double>(tile.size_bytes);
    }
    return absl::OkStatus();
  }

  static Status MakeSamples(const zarr::ImageStoreSettings& store, KindSums& sums) {
    PB_ASSIGN_OR_RETURN(sums.lz4, CodecSample::Make(store, zarr::StoreCodec::kBloscLz4));
    PB_ASSIGN_OR_RETURN(sums.zstd, CodecSample::Make(store, zarr::StoreCodec::kBloscZstd));
    return absl::OkStatus();
  }

  /// The smallest that can be read stands for all.
  Status SampleVolumes() {
    std::vector<const PlannedVolume*> by_size;
    for (const auto& [i, image] : sources_.volumes) {
      by_size.push_back(&image);
      if (!image.channels.empty()) by_size.back() = &image.channels.front();
    }
    std::sort(by_size.begin(), by_size.end(),
              [](const auto* a, const auto* b) { return a->voxel_bytes < b->voxel_bytes; });
    for (const PlannedVolume* volume : by_size) {
      if (volume->voxel_bytes > kMostVolumeBytes || SteadyNowNs() - begun_ns_ > kMostNs) break;
      const Status sampled = SampleVolume(*volume);
      if (sampled.ok() || absl::IsCancelled(sampled)) return sampled;
      failed_.Update(sampled);
    }
    return absl::OkStatus();
  }

  Status SampleVolume(const PlannedVolume& planned) {
    ReadVolumeOptions options;
    PB_ASSIGN_OR_RETURN(options.geometry, GeometryPolicyFromName(task_.settings.geometry));
    PB_ASSIGN_OR_RETURN(options.repair.rules, ParseRepairs(planned.repair));
    options.repair.part = static_cast<std::size_t>(planned.part);
    options.number = planned.number;
    TakeCpuNs();
    PB_ASSIGN_OR_RETURN(Volume volume, ReadVolume(context_.allowed, planned.format, planned.files,
                                                  options, ProgressOf(context_)));
    volumes_.decode_ns = TakeCpuNs();
    volumes_.decoded_bytes = static_cast<double>(volume.voxels.size());
    volumes_.hash_ns = HashNs(volume.voxels);
    zarr::ImageStoreSettings store = zarr::VolumeSettings(volume.dtype);
    const std::int64_t chunk = task_.settings.volume_chunk, side = kBoxChunks * chunk;
    store.chunk = {chunk, chunk, chunk};
    store.shard = {2 * chunk, 2 * chunk, 2 * chunk};
    PB_RETURN_IF_ERROR(MakeSamples(store, volumes_));
    for (std::size_t n = 0; n < kBoxes; ++n) {
      const auto [y, x] = PlaceOf(n);
      ConstTensorView box = volume.View();
      const double places[] = {(static_cast<double>(n) + 0.5) / kBoxes, y, x};
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::int64_t at = CornerOf(places[axis], box.shape[axis], side, 1);
        box.data += at * box.stride_bytes[axis];
        box.shape[axis] = std::min(side, box.shape[axis] - at);
      }
      PB_RETURN_IF_ERROR(volumes_.lz4->Add(box));
      PB_RETURN_IF_ERROR(volumes_.zstd->Add(box));
      PB_RETURN_IF_ERROR(StepOf(context_));
    }
    volumes_.patches = volumes_.finest_bytes / static_cast<double>(store.PixelBytes()) /
                       static_cast<double>(SampledPatch(store).Pixels());
    return absl::OkStatus();
  }

  void AddCost(const std::string& codec) {
    CodecCost cost{codec, 0, 0, 0, 0};
    for (const KindSums* sums : {&slides_, &volumes_}) {
      if (!sums->IsSampled()) continue;
      const bool keeps = codec == "keep";
      const double hash = sums->hash_ns / sums->decoded_bytes;  // for a byte
      double ns = hash * sums->source_bytes;
      PatchCost patch = sums->of_source;
      if (keeps) {
        cost.stored_bytes += sums->source_bytes;
        ns += sums->keep_ns / sums->tile_bytes * sums->source_bytes;
      } else {
        const CodecSample& sample = codec == "lz4" ? *sums->lz4 : *sums->zstd;
        const double scale = sums->raw_bytes / sample.raw_bytes();
        cost.stored_bytes += sample.stored_bytes() * scale;
        ns += sample.encode_ns() * scale;
        patch = sample.patch();
      }
      if (!keeps || !task_.settings.no_statistics) {
        ns += sums->decode_ns / sums->decoded_bytes * sums->own_bytes +
              hash * (keeps ? sums->own_bytes : sums->raw_bytes) +
              sums->colours_ns / sums->decoded_bytes * sums->finest_bytes;
      }
      cost.ingest_core_s += kWholeIngest * ns * 1e-9;
      cost.pass_core_s +=
          (patch.ns / patch.patches * sums->patches + kBesideReading * hash * sums->finest_bytes) *
          1e-9;
      cost.pass_bytes += patch.bytes / patch.patches * sums->patches;
    }
    measures_.patches = slides_.patches + volumes_.patches;
    measures_.costs.push_back(std::move(cost));
  }

  /// The folder that will hold the stores, or the one around it that is there.
  Status ProbeDisks() {
    std::string folder = task_.folders.out;
    while (folder.size() > 1 && !IsFolder(context_.allowed, folder)) {
      folder = std::filesystem::path(folder).parent_path().string();
    }
    const auto step = ProgressOf(context_);
    PB_ASSIGN_OR_RETURN(measures_.free_bytes, FreeBytes(context_.allowed, folder));
    PB_ASSIGN_OR_RETURN(const DiskRates rates, ProbeFolder(context_.allowed, folder, step));
    measures_.write_rate = rates.write_bytes_per_s;
    measures_.read_rate = rates.read_bytes_per_s;
    const std::string file = readable_.empty() ? sources_.volumes.begin()->second.files.front()
                                               : sources_.names[readable_.front()];
    PB_ASSIGN_OR_RETURN(measures_.source_read_rate, ProbeFile(context_.allowed, file, step));
    const auto of_folder = StatOf(context_.allowed, folder),
               of_file = StatOf(context_.allowed, file);
    measures_.is_one_disk = of_folder.ok() && of_file.ok() && of_folder->st_dev == of_file->st_dev;
    return absl::OkStatus();
  }

  TaskContext& context_;
  const IngestTask task_;
  const FoundSources& sources_;
  const std::int64_t begun_ns_ = SteadyNowNs();
  CodecMeasures measures_;
  std::set<std::string> kinds_;
  std::vector<std::size_t> readable_;  ///< slides, by place among the sources
  KindSums slides_, volumes_;
  Status failed_;  ///< the first source that could not be read
  ops::StainCounter colours_;
  EncodedPatch encoded_;
  std::vector<std::byte> pixels_;
};

}  // namespace

StatusOr<TaskOutput> RunIngestMeasure(TaskContext& context) {
  IngestTask task(context.allowed);
  PB_ASSIGN_OR_RETURN(task.folders, StagedFoldersOf(context, kIngestJob.name));
  PB_ASSIGN_OR_RETURN(task.settings,
                      ReadPayload<IngestSettings>(context.payload, "ingest settings", kKeysOfRows));
  PB_ASSIGN_OR_RETURN(const auto asked, FromJson<JobManifest>(context.manifest, "ingest manifest"));
  PB_ASSIGN_OR_RETURN(const SourceRows rows,
                      ReadSourceRows(asked, context.payload, task.settings.repair));
  PB_ASSIGN_OR_RETURN(const FoundSources sources, FindSources(context, asked, rows));
  task.manifest.sources = sources.names;
  PB_ASSIGN_OR_RETURN(const CodecMeasures measures,
                      Measurement(context, std::move(task), sources).Make());
  TaskOutput output;
  output.result = DumpJson(JsonOf(measures));
  return output;
}

}  // namespace patchbay::workers
