#include "workers/jobs/ingest/levels.h"

#include <cmath>

#include "runtime/core/strings.h"
#include "workers/sources/tile_mosaic.h"

namespace patchbay::workers {
namespace {

constexpr double kMppTolerance = 0.05;
/// A source level up to this much coarser than the last one is the next level; a larger gap is
/// filled by averaging.
constexpr double kLargestStep = 2.2;

OutputLevel SourceLevel(const ImageLayout& source, int index) {
  const LevelLayout& finest = source.levels.front();
  const LevelLayout& level = source.levels[static_cast<std::size_t>(index)];
  OutputLevel out;
  out.source_level = index;
  out.size = level.size;
  out.downsample_y = static_cast<double>(finest.size.y) / static_cast<double>(level.size.y);
  out.downsample_x = static_cast<double>(finest.size.x) / static_cast<double>(level.size.x);
  return out;
}

OutputLevel AveragedLevel(const OutputLevel& parent, int parent_index) {
  OutputLevel out;
  out.from_source = false;
  out.parent = parent_index;
  out.size = HalfOf(parent.size);
  out.downsample_y = parent.downsample_y * 2;
  out.downsample_x = parent.downsample_x * 2;
  return out;
}

double Downsample(const OutputLevel& level) {
  return (level.downsample_y + level.downsample_x) / 2;
}

/// Whether source levels more than a factor of two apart get built levels in between.
enum class Gaps { kKept, kFilled };

std::vector<OutputLevel> LevelsOf(const ImageLayout& source, std::int64_t chunk, Gaps gaps) {
  std::vector<OutputLevel> levels = {SourceLevel(source, 0)};
  int next_source = 1;
  const int source_levels = static_cast<int>(source.levels.size());
  while (static_cast<int>(levels.size()) < kMaxOutputLevels) {
    const OutputLevel& last = levels.back();
    const bool fits = last.size.y <= chunk && last.size.x <= chunk;
    if (next_source == source_levels) {
      if (fits) break;
    } else {
      const OutputLevel candidate = SourceLevel(source, next_source);
      const bool is_next = fits || Downsample(candidate) <= kLargestStep * Downsample(last);
      if (gaps == Gaps::kKept || is_next) {
        levels.push_back(candidate);
        ++next_source;
        continue;
      }
    }
    levels.push_back(AveragedLevel(last, static_cast<int>(levels.size()) - 1));
  }
  return levels;
}

/// Leaves out levels finer than the working magnification.
Status StartAt(double mpp, const Spacing& spacing, std::vector<OutputLevel>& levels) {
  const std::optional<double> known = spacing.MeanMpp();
  if (!known) {
    return InvalidArgument(
        "plan levels: --mpp was given, but the slide does not state its mpp: give it by "
        "--assume-mpp");
  }
  const double source_mpp = *known;
  std::string offered;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const double level_mpp = source_mpp * Downsample(levels[i]);
    if (std::abs(level_mpp / mpp - 1.0) <= kMppTolerance) {
      for (std::size_t j = 0; j < i; ++j) levels[j].stored = false;
      return absl::OkStatus();
    }
    offered = StrCat(offered, offered.empty() ? "" : ", ", std::round(level_mpp * 1e4) / 1e4);
  }
  return InvalidArgument("plan levels: no level within 5 % of ", mpp,
                         " um per pixel (this slide offers ", offered, ")");
}

}  // namespace

bool AssumesMpp(const ImageLayout& source, const IngestSettings& settings) {
  return settings.assume_mpp.has_value() && !source.spacing.MeanMpp().has_value();
}

Spacing SpacingOf(const ImageLayout& source, const IngestSettings& settings) {
  if (!AssumesMpp(source, settings)) return source.spacing;
  return SpacingOfMpp(settings.assume_mpp, settings.assume_mpp);
}

StatusOr<std::vector<OutputLevel>> PlanLevels(const ImageLayout& source,
                                              const IngestSettings& settings) {
  if (source.levels.empty()) return InvalidArgument("plan levels: the image has no level");
  if (source.levels.front().size.z != 1) {
    return Unimplemented("plan levels: a volume of ", source.levels.front().size.z,
                         " slices: only 2-D images are ingested so far");
  }
  const Spacing spacing = SpacingOf(source, settings);
  if (settings.KeepsTiles() || source.kind == kTilesKind) {
    std::vector<OutputLevel> own;
    for (int i = 0; i < std::ssize(source.levels); ++i) own.push_back(SourceLevel(source, i));
    if (settings.mpp) PB_RETURN_IF_ERROR(StartAt(*settings.mpp, spacing, own));
    return own;
  }
  std::vector<OutputLevel> levels = LevelsOf(source, settings.chunk, Gaps::kKept);
  if (!settings.mpp || StartAt(*settings.mpp, spacing, levels).ok()) return levels;
  levels = LevelsOf(source, settings.chunk, Gaps::kFilled);
  PB_RETURN_IF_ERROR(StartAt(*settings.mpp, spacing, levels));
  return levels;
}

int StoredIndex(const std::vector<OutputLevel>& levels, int index) {
  int stored = 0;
  for (int i = 0; i < index; ++i) stored += levels[static_cast<std::size_t>(i)].stored ? 1 : 0;
  return stored;
}

int FinestOfColumn(const std::vector<OutputLevel>& levels, int index, int coarser_max) {
  if (coarser_max == 0) return index;
  int finest = 0;
  for (int i = 1; i <= index; ++i) {
    const OutputLevel& level = levels[static_cast<std::size_t>(i)];
    const bool has_pixels = level.from_source || !levels[static_cast<std::size_t>(i) - 1].stored;
    if (has_pixels || i - finest > coarser_max) finest = i;
  }
  return finest;
}

}  // namespace patchbay::workers
