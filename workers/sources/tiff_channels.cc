#include "workers/sources/tiff_channels.h"

#include <algorithm>
#include <utility>

#include "runtime/core/strings.h"
#include "workers/sources/ome_planes.h"

namespace patchbay::workers {
namespace {

bool IsSameSize(const TiffDirectory& a, const TiffDirectory& b) {
  return a.width == b.width && a.height == b.height;
}

/// How many images of the first one's size are in the chain.
std::size_t CountFullSize(const std::vector<TiffDirectory>& all) {
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& d) {
    return !d.mask() && !d.reduced() && IsSameSize(d, all.front());
  }));
}

bool IsColour(const TiffDirectory& d) {
  const auto photometric = static_cast<TiffPhotometric>(d.photometric);
  return photometric == TiffPhotometric::kRgb || photometric == TiffPhotometric::kYCbCr;
}

/// Where the planes lie: the first directory alone where no OME-XML says otherwise. OME-XML
/// has nothing to say about one image in colours.
StatusOr<std::vector<std::size_t>> PlanesOf(const TiffIndex& index,
                                            const std::optional<OmePlanes>& ome) {
  const auto& all = index.directories();
  const std::size_t full_size = CountFullSize(all);
  std::vector<std::size_t> planes{0};
  if (full_size == 1 && IsColour(all[0])) return planes;
  if (ome) {
    PB_ASSIGN_OR_RETURN(planes,
                        DirectoriesOfPlanes(*ome, std::max(all[0].samples, 1u), all.size()));
  }
  if (ome && planes[0] != 0) {
    return Unimplemented("read tiff: OME-XML whose first plane is not in the first directory");
  }
  if (full_size <= planes.size()) return planes;
  return Unimplemented("read tiff: several images of ", all[0].width, " x ", all[0].height,
                       " in one file (channels or planes, not a pyramid)",
                       ome ? StrCat(": ", full_size, ", and OME-XML states ", planes.size())
                           : std::string(": only OME-XML says which"));
}

/// The levels of one plane, finest first.
StatusOr<std::vector<TiffDirectory>> LevelsOf(const TiffIndex& index, std::size_t plane,
                                              bool is_alone) {
  const auto& all = index.directories();
  std::vector<TiffDirectory> levels{all[plane]};
  std::vector<TiffDirectory> candidates;
  for (std::size_t i = 1; is_alone && i < all.size(); ++i) {
    if (!all[i].mask() && all[i].reduced()) candidates.push_back(all[i]);
  }
  PB_ASSIGN_OR_RETURN(auto children, index.ReadSubDirectories(all[plane]));
  for (TiffDirectory& child : children) {
    if (!child.mask()) candidates.push_back(std::move(child));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.width > b.width; });
  for (TiffDirectory& d : candidates) {
    const bool is_alike = d.samples == levels.front().samples && d.bits == levels.front().bits;
    if (is_alike && IsReducedFrom(levels.front(), d) && d.width < levels.back().width) {
      levels.push_back(std::move(d));
    }
  }
  return levels;
}

/// Colours have no names, nor has the one channel of a file that names none.
std::vector<std::string> NamesOf(const TiffDirectory& first, const std::optional<OmePlanes>& ome,
                                 std::size_t planes) {
  if (IsColour(first)) return {};
  std::vector<std::string> stated;
  if (ome) {
    for (const OmeChannel& channel : ome->channels) {
      // A channel of several samples has one name for all of them.
      const std::size_t count = stated.size() + (channel.samples == 1 ? 1 : 0);
      if (count == stated.size()) return UniqueChannelNames({}, planes * first.samples);
      stated.push_back(channel.name);
    }
  }
  const std::size_t channels = planes * first.samples;
  const bool is_named =
      std::any_of(stated.begin(), stated.end(), [](const auto& name) { return !name.empty(); });
  if (channels == 1 && !is_named) return {};
  return UniqueChannelNames(stated, channels);
}

}  // namespace

StatusOr<TiffChannels> FindTiffChannels(const TiffIndex& index, std::string_view description) {
  const auto ome = ParseOmePlanes(description);
  PB_ASSIGN_OR_RETURN(const std::vector<std::size_t> planes, PlanesOf(index, ome));
  const TiffDirectory& first = index.directories().front();
  TiffChannels out;
  out.names = NamesOf(first, ome, planes.size());
  const bool is_alone = planes.size() == 1;
  if (!is_alone && first.samples != 1) {
    return Unimplemented(
        "read tiff: ", planes.size(), " images of ", first.samples,
        " samples per pixel (OME-XML): one, or channels of one sample, are supported");
  }
  for (std::size_t c = 0; c < planes.size(); ++c) {
    PB_ASSIGN_OR_RETURN(auto levels, LevelsOf(index, planes[c], is_alone));
    if (c == 0) out.levels.resize(levels.size());
    if (levels.size() != out.levels.size()) {
      return InvalidArgument("read tiff: channel ", c, " has ", levels.size(),
                             " levels, channel 0 has ", out.levels.size());
    }
    for (std::size_t i = 0; i < levels.size(); ++i) out.levels[i].push_back(std::move(levels[i]));
  }
  return out;
}

Status CheckAlike(const std::vector<TiffDirectory>& planes) {
  const TiffDirectory& first = planes.front();
  for (std::size_t c = 1; c < planes.size(); ++c) {
    const TiffDirectory& d = planes[c];
    if (!IsSameSize(d, first)) {
      return InvalidArgument("read tiff: channel ", c, " has ", d.width, " x ", d.height,
                             " pixels, channel 0 has ", first.width, " x ", first.height);
    }
    const char* other = nullptr;
    if (d.tiled != first.tiled || d.piece_width != first.piece_width ||
        d.piece_height != first.piece_height) {
      other = "tiles or strips";
    }
    if (d.bits != first.bits || d.samples != first.samples ||
        d.sample_format != first.sample_format) {
      other = "samples";
    }
    if (d.compression != first.compression || d.predictor != first.predictor ||
        d.fill_order != first.fill_order || d.planar != first.planar) {
      other = "compression";
    }
    if (d.photometric != first.photometric) other = "photometric interpretation";
    if (d.orientation != first.orientation) other = "orientation";
    if (other != nullptr) {
      return Unimplemented("read tiff: channel ", c, " has other ", other, " than channel 0");
    }
  }
  return absl::OkStatus();
}

bool IsReducedFrom(const TiffDirectory& full, const TiffDirectory& reduced) {
  if (reduced.width <= 0 || reduced.height <= 0) return false;
  if (reduced.width > full.width || reduced.height > full.height) return false;
  if (reduced.width == full.width && reduced.height == full.height) return false;
  const double ratio = static_cast<double>(full.height) / static_cast<double>(full.width);
  const double low = ratio * static_cast<double>(reduced.width - 1) - 1.5;
  const double high = ratio * static_cast<double>(reduced.width + 1) + 1.5;
  const auto height = static_cast<double>(reduced.height);
  return height >= low && height <= high;
}

}  // namespace patchbay::workers
