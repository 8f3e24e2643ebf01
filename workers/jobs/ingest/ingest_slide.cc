#include "workers/jobs/ingest/ingest_slide.h"

#include <algorithm>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/shard_encoder.h"
#include "workers/jobs/ingest/tile_source.h"
#include "workers/sources/tile_mosaic.h"

namespace patchbay::workers {
namespace {

/// Background of colours is white, of channels of fluorescence black.
double BackgroundOf(const ImageLayout& layout) {
  if (layout.channels != 3 || !layout.channel_names.empty()) return 0;
  return layout.dtype == DType::kUint16 ? 65535 : 255;
}

StatusOr<zarr::ImageStoreSettings> StoreSettings(const IngestSettings& settings,
                                                 const ImageLayout& layout) {
  zarr::ImageStoreSettings store;
  store.dtype = layout.dtype;
  store.channels = layout.channels;
  store.chunk = Flat(settings.chunk, settings.chunk);
  store.shard = Flat(settings.shard, settings.shard);
  store.codec = zarr::StoreCodecFromName(settings.codec).value();
  store.codec_level = static_cast<int>(settings.codec_level);
  store.fill_value = BackgroundOf(layout);
  if (!settings.KeepsTiles()) PB_RETURN_IF_ERROR(zarr::Validate(store));
  return store;
}

/// The store's chunks become the slide's tiles, which have one size on all stored levels.
Status KeepTiles(IngestSlide& slide) {
  const Extent limit = slide.store.shard;
  for (const OutputLevel& level : slide.levels) {
    if (!level.stored) continue;
    auto format = slide.source->TilesOf(level.source_level);
    if (!format.ok()) return CannotKeep(slide, MessageOf(format.status()));
    const auto& source = slide.source->layout().levels;
    const Extent& tile = source[static_cast<std::size_t>(level.source_level)].chunk;
    if (!slide.tiles.empty() && tile != slide.store.chunk) {
      return CannotKeep(slide, StrCat("tiles of ", slide.store.chunk.ToString(), " and of ",
                                      tile.ToString(), " pixels"));
    }
    slide.store.chunk = tile;
    if (slide.settings.self_contained) format->jpeg_tables.clear();
    slide.tiles.push_back(*std::move(format));
  }
  const Extent& tile = slide.store.chunk;
  slide.store.shard = Flat(std::max<std::int64_t>(1, limit.y / tile.y) * tile.y,
                           std::max<std::int64_t>(1, limit.x / tile.x) * tile.x);
  const Status valid = zarr::Validate(slide.store);
  return valid.ok() ? valid : CannotKeep(slide, MessageOf(valid));
}

/// Every tile is a chunk; a shard has as many as fill the settings' shard.
Status FitToTiles(IngestSlide& slide) {
  constexpr std::int64_t kLongestShard = 65'536;
  const Extent tile = slide.source->layout().levels.front().chunk, square = slide.store.shard;
  const std::int64_t fitting = std::min(square.Pixels() / tile.Pixels(), kLongestShard / tile.y);
  slide.store.chunk = tile;
  slide.store.shard = Flat(std::max<std::int64_t>(1, fitting) * tile.y, tile.x);
  return zarr::Validate(slide.store);
}

}  // namespace

StatusOr<IngestSlide> OpenIngestSlide(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(IngestTask task, OpenIngestTask(context));
  IngestSlide slide(std::move(task));
  PB_ASSIGN_OR_RETURN(slide.path, context.MayRead(slide.Source()));
  PB_ASSIGN_OR_RETURN(slide.source, OpenSourceImage(context, slide, slide.path));
  PB_RETURN_IF_ERROR(SettleStore(slide));
  return slide;
}

Status SettleStore(IngestSlide& slide) {
  slide.tiles.clear();
  PB_ASSIGN_OR_RETURN(slide.levels, PlanLevels(slide.source->layout(), slide.settings));
  PB_ASSIGN_OR_RETURN(slide.store, StoreSettings(slide.settings, slide.source->layout()));
  if (slide.settings.KeepsTiles()) return KeepTiles(slide);
  return slide.source->layout().kind == kTilesKind ? FitToTiles(slide) : absl::OkStatus();
}

std::vector<Extent> StoredSizes(const std::vector<OutputLevel>& levels) {
  std::vector<Extent> sizes;
  for (const OutputLevel& level : levels) {
    if (level.stored) sizes.push_back(level.size);
  }
  return sizes;
}

int LevelOfStored(const std::vector<OutputLevel>& levels, int stored) {
  for (int i = 0; i < static_cast<int>(levels.size()); ++i) {
    if (levels[static_cast<std::size_t>(i)].stored && stored-- == 0) return i;
  }
  return -1;
}

std::vector<zarr::ShardPlace> ShardPlaces(const IngestSlide& slide) {
  std::vector<zarr::ShardPlace> places;
  const std::vector<Extent> sizes = StoredSizes(slide.levels);
  for (std::size_t level = 0; level < sizes.size(); ++level) {
    const Extent grid = zarr::ShardGridOf(slide.store, sizes[level]);
    for (std::int64_t i = 0; i < grid.Pixels(); ++i) {
      places.push_back({static_cast<int>(level), CellAt(grid, i)});
    }
  }
  return places;
}

StatusOr<ShardRequest> OpenShardRequest(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(IngestSlide slide, OpenIngestSlide(context));
  ShardRequest request{std::move(slide), {}};
  constexpr std::string_view kWhat = "ingest payload";
  PB_ASSIGN_OR_RETURN(const auto payload,
                      FromJson<ShardPayload>(context.payload, kWhat, UnknownKeys::kSkipped));
  request.slide.slide_key = payload.slide_key;
  const std::int64_t first = payload.first, count = payload.count;
  const std::vector<zarr::ShardPlace> all = ShardPlaces(request.slide);
  const auto size = static_cast<std::int64_t>(all.size());
  if (first < 0 || count < 1 || first > size || count > size - first) {
    return InvalidArgument(kWhat, ": ", count, " zarr shards from ", first, " on, of only ", size);
  }
  request.places.assign(all.begin() + first, all.begin() + first + count);
  return request;
}

LevelColumn ColumnOf(const IngestSlide& slide, int level) {
  const int coarser = zarr::CoarserLevels(slide.store);
  const int finest = FinestOfColumn(slide.levels, LevelOfStored(slide.levels, level), coarser);
  LevelColumn column;
  column.finest = StoredIndex(slide.levels, finest);
  for (int i = finest; i < static_cast<int>(slide.levels.size()); ++i) {
    if (FinestOfColumn(slide.levels, i, coarser) != finest) break;
    const OutputLevel& member = slide.levels[static_cast<std::size_t>(i)];
    column.sizes.push_back(member.size);
  }
  return column;
}

std::vector<zarr::ShardPlace> FinestBelow(const IngestSlide& slide, const LevelColumn& column,
                                          const zarr::ShardPlace& place) {
  std::vector<zarr::ShardPlace> places;
  const int above = place.level - column.finest;
  const Extent grid = zarr::ShardGridOf(slide.store, column.sizes[0]);
  const Point& at = place.at;
  for (std::int64_t y = at.y << above; y < std::min((at.y + 1) << above, grid.y); ++y) {
    for (std::int64_t x = at.x << above; x < std::min((at.x + 1) << above, grid.x); ++x) {
      places.push_back({column.finest, {0, y, x}});
    }
  }
  return places;
}

std::string RecordName(const zarr::ShardPlace& place) {
  return StrCat(place.level, ".", place.at.ToString("."));
}

bool HasColours(const IngestSlide& slide) {
  return IsRgb(slide.source->layout()) && !slide.settings.no_statistics;
}

Status CannotKeep(const IngestTask& task, std::string_view cause) {
  return task.Error(absl::StatusCode::kUnimplemented, StrCat("--codec keep: ", cause),
                    "ingest it with --codec zstd or lz4");
}

zarr::ImageStoreSpec StoreSpec(const IngestSlide& slide, const Digest& source_digest,
                               std::uint64_t source_bytes) {
  zarr::ImageStoreSpec spec;
  spec.settings = slide.store;
  spec.levels = StoredSizes(slide.levels);
  spec.tiles = slide.tiles;
  const ImageLayout& layout = slide.source->layout();
  spec.channel_names = layout.channel_names;
  const OutputLevel& first = slide.levels[static_cast<std::size_t>(LevelOfStored(slide.levels, 0))];
  spec.spacing = SpacingOf(layout, slide.settings);
  if (spec.spacing.y) spec.spacing.y->value *= first.downsample_y;
  if (spec.spacing.x) spec.spacing.x->value *= first.downsample_x;
  for (const OutputLevel& level : slide.levels) {
    if (!level.stored) continue;
    spec.downsamples.push_back(
        {level.downsample_y / first.downsample_y, level.downsample_x / first.downsample_x});
  }
  spec.attributes["source_sha256"] = source_digest.Hex();
  spec.attributes["source_kind"] = layout.kind;
  spec.attributes["source_bytes"] = source_bytes;
  if (slide.settings.KeepsTiles() && layout.objective_power) {
    spec.attributes["objective_power"] = *layout.objective_power;  // a slide made of it states it
  }
  if (AssumesMpp(layout, slide.settings)) {
    spec.attributes["mpp_assumed"] = *slide.settings.assume_mpp;
  }
  spec.attributes["codec_plan"] = ParseJson(slide.settings.Canonical(), "settings").value();
  if (slide.settings.no_statistics) spec.attributes[zarr::kPixelDigestOf] = zarr::kTilesThemselves;
  if (first.source_level != 0 || !first.from_source) {  // annotations are in its pixels
    const Extent& whole = layout.levels.front().size;
    spec.attributes["source_size"] = {whole.y, whole.x};
  }
  Json built = Json::array();
  for (int i = 0; i < static_cast<int>(slide.levels.size()); ++i) {
    const OutputLevel& level = slide.levels[static_cast<std::size_t>(i)];
    if (level.stored && !level.from_source) built.push_back(StoredIndex(slide.levels, i));
  }
  spec.attributes["levels_built"] = built;
  return spec;
}

}  // namespace patchbay::workers
