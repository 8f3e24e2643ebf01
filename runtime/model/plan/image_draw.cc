#include "runtime/model/plan/image_draw.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/places.h"

namespace patchbay::plan {
namespace {

using Wide = unsigned __int128;
using Group = std::vector<std::uint32_t>;

constexpr std::uint64_t kTotal = std::uint64_t{1} << 40;
constexpr double kClassTotal = 1u << 30;

Group PrefixOf(const ImageShare& share, std::size_t length) {
  return {share.groups.begin(), share.groups.begin() + static_cast<std::ptrdiff_t>(length)};
}

/// Classes by their weights, as integers.
std::vector<std::uint64_t> ClassWeights(const RunConfig& config) {
  double sum = 0;
  for (const auto& [name, weight] : config.class_weights) sum += weight;
  std::vector<std::uint64_t> weights;
  for (const auto& [name, weight] : config.class_weights) {
    weights.push_back(static_cast<std::uint64_t>(std::llround(weight / sum * kClassTotal)));
  }
  return weights;
}

using Shares = std::vector<std::vector<ImageShare>>;

bool HasPixels(const std::vector<ImageShare>& shares) {
  return std::any_of(shares.begin(), shares.end(),
                     [](const ImageShare& share) { return share.pixels > 0; });
}

/// The weights of the sets under `foreground`: 1 for each class that is drawn. A class that the
/// config does not name and no image has is left out.
std::vector<std::uint64_t> ForegroundSets(const Foreground& foreground, const Shares& shares) {
  std::vector<std::uint64_t> drawn(shares.size());
  for (std::size_t set = 1; set < shares.size(); ++set) {
    drawn[set] = !foreground.classes.empty() || HasPixels(shares[set]) ? 1 : 0;
  }
  return drawn;
}

/// kAnywhere, and its part of the foreground for each class.
std::vector<std::uint64_t> ForegroundWeights(const Foreground& foreground, const Shares& shares) {
  std::vector<std::uint64_t> weights = ForegroundSets(foreground, shares);
  const auto sets = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  const double each = foreground.fraction / static_cast<double>(std::max<std::uint64_t>(1, sets));
  for (std::uint64_t& weight : weights) {
    weight *= static_cast<std::uint64_t>(std::llround(each * kClassTotal));
  }
  weights[kAnywhere] =
      static_cast<std::uint64_t>(std::llround((1 - foreground.fraction) * kClassTotal));
  return weights;
}

std::vector<std::uint64_t> SetWeights(const RunConfig& config, const Shares& shares) {
  if (config.foreground) return ForegroundWeights(*config.foreground, shares);
  return config.class_weights.empty() ? std::vector<std::uint64_t>{1} : ClassWeights(config);
}

Status NoForeground(std::size_t images) {
  return InvalidArgument("plan: key 'sampling.oversample_foreground': none of ", images,
                         " images has a voxel of foreground");
}

}  // namespace

Status NoTissue(const RunConfig& config, std::size_t images) {
  return InvalidArgument(
      "plan: key 'sampling.tissue': none of ", images, " images has a patch of which ",
      config.tissue_fraction.value_or(0), " is tissue of the set '", config.tissue_set,
      "': lower min_fraction, or make patches smaller", config.mpp.empty() ? "" : ": patch.mpp is ",
      config.mpp.empty() ? "" : StrCat(config.mpp.front(), " um per pixel (20x is about 0.5)"));
}

namespace {

Status NoPixels(const RunConfig& config, std::size_t set, std::size_t images) {
  if (config.foreground) {
    const std::vector<std::string>& names = config.foreground->classes;
    return InvalidArgument("plan: key 'sampling.foreground': none of ", images,
                           " images has a voxel of ",
                           set == kAnywhere      ? std::string(kBackgroundClass)
                           : set <= names.size() ? StrCat("class '", names[set - 1], "'")
                                                 : StrCat("class ", set, " of the set"));
  }
  if (config.class_weights.empty()) {
    return NoTissue(config, images);
  }
  const auto& [name, weight] =
      *std::next(config.class_weights.begin(), static_cast<std::ptrdiff_t>(set));
  return InvalidArgument("plan: key 'sampling.class_weights.", name, "': a weight of ", weight,
                         ", but none of ", images, " images has a pixel of this class",
                         config.tissue_fraction ? " with enough tissue around it" : "");
}

}  // namespace

std::vector<std::uint64_t> WeightsOf(std::span<const ImageShare> shares) {
  // The groups below every group, or in the last the pixels of its images.
  std::map<Group, std::set<std::uint32_t>> below;
  std::map<Group, Wide> pixels;
  for (const ImageShare& share : shares) {
    if (share.pixels == 0) continue;
    for (std::size_t k = 0; k < share.groups.size(); ++k) {
      below[PrefixOf(share, k)].insert(share.groups[k]);
    }
    pixels[PrefixOf(share, share.groups.size())] += share.pixels;
  }
  std::vector<std::uint64_t> weights;
  for (const ImageShare& share : shares) {
    if (share.pixels == 0) {
      weights.push_back(0);
      continue;
    }
    Wide parts = pixels[PrefixOf(share, share.groups.size())];
    for (std::size_t k = 0; k < share.groups.size(); ++k) {
      parts *= below[PrefixOf(share, k)].size();
    }
    weights.push_back(static_cast<std::uint64_t>(Wide{kTotal} * share.pixels / parts));
  }
  return weights;
}

std::vector<std::uint64_t> ShareOut(std::span<const std::uint64_t> weights, std::uint64_t total,
                                    std::uint64_t most) {
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
  Wide left = total, others = 0;
  for (const std::uint64_t weight : weights) others += weight;
  std::vector<std::uint64_t> parts(weights.size());
  for (const std::size_t i : order) {
    if (weights[i] == 0) break;
    const Wide part = std::min<Wide>(left * weights[i] / others, most);
    parts[i] = static_cast<std::uint64_t>(part);
    // Once one stays below the limit, so do all that weigh less: the rest is plain proportion.
    if (part < most) continue;
    left -= part;
    others -= weights[i];
    if (others == 0 && left > 0) return std::vector<std::uint64_t>(weights.size());
  }
  return parts;
}

StatusOr<ImageDraw> ImageDraw::Of(const RunConfig& config,
                                  const std::vector<std::vector<ImageShare>>& shares,
                                  std::uint64_t patches) {
  ImageDraw draw;
  const std::vector<std::uint64_t> sets = SetWeights(config, shares);
  if (config.foreground) {
    const std::vector<std::uint64_t> drawn = ForegroundSets(*config.foreground, shares);
    const bool has_any = std::any_of(drawn.begin(), drawn.end(), [](auto n) { return n > 0; });
    if (!has_any) return NoForeground(shares[kAnywhere].size());
    if (config.foreground->profile == ForegroundProfile::kNnunet) {
      draw.batch_ = config.global_size;
      draw.unforced_ = static_cast<std::uint64_t>(
          std::nearbyint(static_cast<double>(draw.batch_) * (1 - config.foreground->fraction)));
      PB_ASSIGN_OR_RETURN(draw.forced_, AliasTable::Of(drawn));
    }
  }
  for (std::size_t set = 0; set < sets.size(); ++set) {
    AliasTable& images = draw.images_.emplace_back();
    if (sets[set] == 0) continue;
    std::vector<std::uint64_t> weights = WeightsOf(shares[set]);
    const auto none = [](std::uint64_t weight) { return weight == 0; };
    if (std::all_of(weights.begin(), weights.end(), none)) {
      return NoPixels(config, set, shares[set].size());
    }
    if (config.max_per_slide != 0 && config.max_per_slide < patches) {
      const auto most = static_cast<std::uint64_t>(Wide{kTotal} * config.max_per_slide / patches);
      weights = ShareOut(weights, kTotal, most);
      if (std::all_of(weights.begin(), weights.end(), none)) {
        return InvalidArgument("plan: key 'sampling.max_per_slide': ", config.max_per_slide,
                               " patches of each of ", shares[set].size(),
                               " images are fewer than the ", patches, " of an epoch");
      }
    }
    PB_ASSIGN_OR_RETURN(images, AliasTable::Of(weights));
  }
  PB_ASSIGN_OR_RETURN(draw.sets_, AliasTable::Of(sets));
  return draw;
}

ImageDraw::Pick ImageDraw::Draw(DrawKey key) const {
  key.stream = DrawStream::kPosition;
  const PhiloxBlock block = patchbay::Draw(key, kImageBlock);
  Pick pick;
  if (batch_ == 0) {
    pick.set = sets_.Draw(HalfOf(block, 0));
  } else if (key.ordinal % batch_ >= unforced_) {
    pick.set = forced_.Draw(HalfOf(block, 0));
  }
  pick.image = static_cast<std::uint32_t>(images_[pick.set].Draw(HalfOf(block, 1)));
  return pick;
}

bool DrawsImages(const RunConfig& config) {
  return !config.class_weights.empty() || !config.weight_by.empty() || config.foreground;
}

}  // namespace patchbay::plan
