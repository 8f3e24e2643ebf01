#include "workers/sources/dicom_slide.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/model/source/channel_names.h"
#include "runtime/os/folder_listing.h"
#include "workers/sources/dicom_instance.h"
#include "workers/sources/joined_files.h"
#include "workers/sources/ome_planes.h"
#include "workers/sources/tiff_channels.h"
#include "workers/sources/tiff_levels.h"
#include "workers/sources/tiff_source.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxInstances = 1024;

/// An instance, and where its file begins among all of the slide.
struct PlacedInstance {
  DicomInstance instance;
  std::uint64_t begin = 0;
};

/// A concatenation in the order of its frames, or an instance of its own.
using LevelParts = std::vector<PlacedInstance>;

/// Instances of one size: each has other optical paths.
using LevelInstances = std::vector<LevelParts>;

/// The optical paths of a slide, by identifier, in the order of its channels.
using OpticalPaths = std::vector<DicomOpticalPath>;

const DicomInstance& FirstOf(const LevelParts& parts) { return parts.front().instance; }
const DicomInstance& FirstOf(const LevelInstances& level) { return FirstOf(level.front()); }

/// Places of a level's grid.
std::size_t CellsOf(const DicomTiling& tiling) {
  return static_cast<std::size_t>((tiling.height + tiling.tile_height - 1) / tiling.tile_height *
                                  ((tiling.width + tiling.tile_width - 1) / tiling.tile_width));
}

std::size_t CountFrames(const LevelParts& parts) {
  std::size_t frames = 0;
  for (const PlacedInstance& part : parts) frames += part.instance.frames.offset.size();
  return frames;
}

std::string SizeOfLevel(const DicomTiling& tiling) {
  return StrCat(tiling.height, " x ", tiling.width, " pixels");
}

/// "instances 3 and 4".
std::string Both(const DicomInstance& a, const DicomInstance& b) {
  return StrCat("instances ", a.number, " and ", b.number);
}

constexpr std::size_t kMaxFocalNamed = 16;
constexpr std::string_view kHowToChoose = "a table of slides chooses one by its column ";

/// Heights of focal planes, the lowest kMaxFocalNamed of them.
class Heights {
 public:
  void Add(double um) {
    um_.insert(um);
    if (um_.size() > kMaxFocalNamed) um_.erase(std::prev(um_.end()));
  }
  void Add(const LevelParts& parts) {
    for (const PlacedInstance& part : parts) {
      for (const double um : part.instance.height_of) Add(um);
    }
  }
  std::size_t size() const { return um_.size(); }

  /// "0, 1.5 um".
  std::string ToString() const {
    std::vector<std::string> numbers;
    for (const double um : um_) {
      char number[32];
      std::snprintf(number, sizeof number, "%.6g", um);
      numbers.push_back(number);
    }
    return StrCat(StrJoin(numbers, ", "), " um");
  }

 private:
  std::set<double> um_;
};

/// ": focal planes at 0, 1.5 um", and how one is chosen; "" where there is one.
std::string FocalPlanesText(const Heights& heights) {
  if (heights.size() < 2) return "";
  return StrCat(": focal planes at ", heights.ToString(), ": ", kHowToChoose, kFocalPlaneColumn);
}

/// Focal planes of a level of TILED_FULL, as stated, or by how often its frames cover it.
StatusOr<std::size_t> CountPlanes(const LevelParts& parts) {
  const DicomInstance& first = FirstOf(parts);
  const std::size_t frames = CountFrames(parts), cells = CellsOf(first.tiling);
  const std::size_t once = cells * first.paths.size();
  std::size_t planes = first.focal_planes;
  if (planes == 0) planes = first.concatenation.empty() ? frames / once : 1;
  if (planes > 0 && frames % planes == 0 && frames / planes == once) return planes;
  return InvalidArgument("instance ", first.number, ": ", frames,
                         " frames (0028,0008) of TILED_FULL for ", cells, " tiles in ",
                         Counted(first.paths.size(), "optical path"), " and ",
                         Counted(planes, "focal plane"), " (0048,0303): is a part missing");
}

/// Checks that the parts are all of a concatenation.
Status CheckParts(const LevelParts& parts) {
  const DicomInstance& first = FirstOf(parts);
  std::uint64_t frames = 0;
  for (const PlacedInstance& part : parts) {
    const DicomInstance& one = part.instance;
    if (one.tiling != first.tiling || one.paths.size() != first.paths.size()) {
      return InvalidArgument(
          Both(first, one),
          " of a concatenation (0020,9161) differ in size, tiles, samples or optical paths");
    }
    if (one.first_frame != frames) {
      return InvalidArgument("instance ", one.number, " of a concatenation begins at frame ",
                             one.first_frame, " (0020,9228), and those before it have ", frames,
                             ": is a part missing");
    }
    frames += one.frames.offset.size();
  }
  return absl::OkStatus();
}

/// Gives the frames of a level of TILED_FULL their places: tile by tile in rows, then focal plane
/// by plane from the lowest, then path by path.
Status PlaceFull(LevelParts& parts) {
  const DicomTiling& tiling = FirstOf(parts).tiling;
  if (tiling.is_sparse) return absl::OkStatus();
  const std::size_t cells = CellsOf(tiling);
  PB_ASSIGN_OR_RETURN(const std::size_t planes, CountPlanes(parts));
  if (planes > 1 && !FirstOf(parts).focal_step_um) {
    return Unimplemented("instance ", FirstOf(parts).number, ": ", planes,
                         " focal planes (0048,0303) without SpacingBetweenSlices (0018,0088), by "
                         "which one could be chosen: extract one into a series of its own");
  }
  const double step_um = FirstOf(parts).focal_step_um.value_or(0);
  std::size_t frame = 0;
  for (auto& [instance, begin] : parts) {
    for (std::size_t i = 0; i < instance.frames.offset.size(); ++i) {
      instance.cells.push_back(frame % cells);
      const std::size_t layer = frame++ / cells;
      instance.path_of.push_back(static_cast<std::uint8_t>(layer / planes));
      instance.height_of.push_back(instance.focal_um +
                                   step_um * static_cast<double>(layer % planes));
    }
  }
  return absl::OkStatus();
}

/// The directory of a TIFF that has the same tiles.
TiffDirectory DirectoryOf(const PlacedInstance& part) {
  const DicomTiling& tiling = part.instance.tiling;
  TiffDirectory directory;
  directory.height = tiling.height;
  directory.width = tiling.width;
  directory.tiled = true;
  directory.piece_height = tiling.tile_height;
  directory.piece_width = tiling.tile_width;
  directory.compression = static_cast<std::uint32_t>(tiling.compression);
  directory.photometric = static_cast<std::uint32_t>(tiling.photometric);
  directory.samples = tiling.samples;
  directory.bits = 8;
  directory.planar = tiling.planar;
  directory.icc_profile = part.instance.paths.front().icc_profile;
  if (directory.icc_profile) directory.icc_profile->offset += part.begin;
  return directory;
}

std::size_t PlaceOf(const OpticalPaths& paths, const DicomOpticalPath& path) {
  const auto found = std::find_if(paths.begin(), paths.end(), [&](const DicomOpticalPath& one) {
    return one.identifier == path.identifier;
  });
  return static_cast<std::size_t>(found - paths.begin());
}

/// The pieces of a level, of each channel that is stored apart one after another.
class LevelPieces {
 public:
  LevelPieces(const TiffLevel& level, const OpticalPaths& paths, std::size_t cells)
      : paths_(paths), cells_(cells) {
    samples_ = level.directory.planar == 2 ? level.directory.samples : 1;
    const std::size_t count = cells * static_cast<std::size_t>(level.planes);
    pieces_.offset.resize(count);
    pieces_.size_bytes.resize(count);
  }

  Status Add(const LevelParts& parts) {
    for (const auto& [instance, begin] : parts) {
      for (std::size_t i = 0; i < instance.frames.offset.size(); ++i) {
        const std::size_t cell = instance.cells[i], path = instance.path_of[i];
        const std::size_t plane = samples_ > 1 ? 0 : PlaceOf(paths_, instance.paths[path]);
        if (pieces_.size_bytes[plane * cells_ + cell] != 0) {
          Heights heights;
          heights.Add(parts);
          return Unimplemented("instance ", instance.number, ": frame ", i + 1,
                               " lies where another does", FocalPlanesText(heights));
        }
        const std::uint64_t size = instance.frames.size_bytes[i] / samples_;
        for (std::size_t sample = 0; sample < samples_; ++sample) {
          const std::size_t at = (plane + sample) * cells_ + cell;
          pieces_.offset[at] = begin + instance.frames.offset[i] + sample * size;
          pieces_.size_bytes[at] = size;
        }
      }
    }
    return absl::OkStatus();
  }

  const TiffPieces& pieces() const { return pieces_; }

 private:
  const OpticalPaths& paths_;
  const std::size_t cells_;
  std::size_t samples_ = 1;
  TiffPieces pieces_;
};

StatusOr<TiffLevel> LevelOf(const LevelInstances& instances, const OpticalPaths& paths) {
  TiffLevel level;
  level.directory = DirectoryOf(instances.front().front());
  const TiffDirectory& d = level.directory;
  const auto cells = static_cast<std::size_t>(d.PieceRows() * d.PieceColumns());
  level.planes = static_cast<int>(d.planar == 2 ? d.samples : paths.size());
  LevelPieces pieces(level, paths, cells);
  for (const LevelParts& parts : instances) PB_RETURN_IF_ERROR(pieces.Add(parts));
  level.pieces = TiffPieceTable(pieces.pieces());
  const auto compression = static_cast<TiffCompression>(d.compression);
  if (compression == TiffCompression::kNone) return level;
  level.has_item_heads = true;
  level.is_lossless = FirstOf(instances).tiling.is_lossless;
  if (compression == TiffCompression::kDicomJpegLs) return level;
  level.format = tiles::TileFormat{
      compression == TiffCompression::kJpeg ? tiles::TileCodec::kJpeg : tiles::TileCodec::kJpeg2000,
      static_cast<TiffPhotometric>(d.photometric) == TiffPhotometric::kYCbCr, ""};
  return level;
}

/// The concatenations and single instances, the largest first, then by number.
std::vector<LevelParts> GroupParts(std::vector<PlacedInstance> instances) {
  std::map<std::string, LevelParts> grouped;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const std::string& uid = instances[i].instance.concatenation;
    grouped[uid.empty() ? StrCat("#", i) : uid].push_back(std::move(instances[i]));
  }
  std::vector<LevelParts> all;
  for (auto& [uid, parts] : grouped) {
    std::stable_sort(parts.begin(), parts.end(),
                     [](const PlacedInstance& a, const PlacedInstance& b) {
                       return a.instance.first_frame < b.instance.first_frame;
                     });
    all.push_back(std::move(parts));
  }
  const auto order = [](const LevelParts& parts) {
    const DicomInstance& first = FirstOf(parts);
    return std::tuple(-first.tiling.width, first.number.size(), first.number);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const LevelParts& a, const LevelParts& b) { return order(a) < order(b); });
  return all;
}

/// Leaves the frames of an instance for which `takes(number)`.
template <typename Takes>
void KeepFrames(DicomInstance& instance, const Takes& takes) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < instance.cells.size(); ++i) {
    if (!takes(i)) continue;
    instance.cells[kept] = instance.cells[i];
    instance.path_of[kept] = instance.path_of[i];
    instance.height_of[kept] = instance.height_of[i];
    instance.frames.offset[kept] = instance.frames.offset[i];
    instance.frames.size_bytes[kept++] = instance.frames.size_bytes[i];
  }
  instance.cells.resize(kept);
  instance.path_of.resize(kept);
  instance.height_of.resize(kept);
  instance.frames.offset.resize(kept);
  instance.frames.size_bytes.resize(kept);
}

/// Whether a tile lies above another of its optical path.
bool IsStack(const LevelParts& parts) {
  const std::size_t cells = CellsOf(FirstOf(parts).tiling);
  std::vector<bool> seen(cells * FirstOf(parts).paths.size());
  for (const PlacedInstance& part : parts) {
    const DicomInstance& one = part.instance;
    for (std::size_t i = 0; i < one.cells.size(); ++i) {
      const std::size_t at = one.path_of[i] * cells + one.cells[i];
      if (seen[at]) return true;
      seen[at] = true;
    }
  }
  return false;
}

/// Whether the largest level, of that width, is still there.
bool HasLargest(const std::vector<LevelParts>& levels, std::int64_t width) {
  return !levels.empty() && FirstOf(levels.front()).tiling.width == width;
}

/// Place of the path of that identifier, else of the only one of that description.
std::optional<std::size_t> PathNamed(const OpticalPaths& paths, const std::string& name) {
  std::optional<std::size_t> described;
  std::size_t count = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].identifier == name) return i;
    if (paths[i].description == name) described = i;
    count += paths[i].description == name ? 1 : 0;
  }
  return count == 1 ? described : std::nullopt;
}

/// Takes one optical path of the levels that have it.
Status ChoosePath(const std::string& name, std::vector<LevelParts>& levels) {
  const std::int64_t width = FirstOf(levels.front()).tiling.width;
  std::set<std::string> there;
  std::vector<LevelParts> chosen;
  for (LevelParts& parts : levels) {
    bool has_it = true;
    for (auto& [instance, begin] : parts) {
      for (const DicomOpticalPath& path : instance.paths) {
        if (instance.tiling.width != width) continue;
        there.insert(path.identifier.empty() ? "one without a name" : path.identifier);
      }
      const auto place = PathNamed(instance.paths, name);
      has_it = has_it && place.has_value();
      if (!has_it) break;
      KeepFrames(instance, [&](std::size_t i) { return instance.path_of[i] == *place; });
      std::fill(instance.path_of.begin(), instance.path_of.end(), 0);
      instance.paths = {instance.paths[*place]};
    }
    if (has_it && CountFrames(parts) > 0) chosen.push_back(std::move(parts));
  }
  levels = std::move(chosen);
  if (HasLargest(levels, width)) return absl::OkStatus();
  return InvalidArgument("column '", kOpticalPathColumn, "': no optical path '", name, "'; it has ",
                         StrJoin({there.begin(), there.end()}, ", "), " (0048,0105)");
}

/// Takes one focal plane of the levels that have it.
Status ChooseFocalPlane(double um, std::vector<LevelParts>& levels) {
  const std::int64_t width = FirstOf(levels.front()).tiling.width;
  Heights there, named;
  named.Add(um);
  std::vector<LevelParts> chosen;
  for (LevelParts& parts : levels) {
    if (FirstOf(parts).tiling.width == width) there.Add(parts);
    const bool is_stack = IsStack(parts);
    const std::size_t frames = CountFrames(parts);
    for (auto& [instance, begin] : parts) {
      KeepFrames(instance, [&](std::size_t i) {
        return std::abs(instance.height_of[i] - um) < kSameFocalUm;
      });
    }
    const std::size_t kept = CountFrames(parts);
    if (kept > 0 && kept < frames && !is_stack) {
      return InvalidArgument("column '", kFocalPlaneColumn, "': instance ", FirstOf(parts).number,
                             " has one focal plane, whose tiles lie at heights of their own: leave "
                             "the cell empty");
    }
    if (kept > 0) chosen.push_back(std::move(parts));
  }
  levels = std::move(chosen);
  if (HasLargest(levels, width)) return absl::OkStatus();
  return InvalidArgument("column '", kFocalPlaneColumn, "': no focal plane at ", named.ToString(),
                         "; it has ", there.ToString());
}

/// Instances of one size are optical paths of one level.
StatusOr<std::vector<LevelInstances>> GroupLevels(std::vector<LevelParts> grouped) {
  std::vector<LevelInstances> levels;
  for (LevelParts& parts : grouped) {
    const DicomInstance& one = FirstOf(parts);
    const bool is_next = levels.empty() || FirstOf(levels.back()).tiling.width > one.tiling.width;
    if (is_next) levels.push_back({});
    for (const LevelParts& other : levels.back()) {
      const DicomInstance& before = FirstOf(other);
      const bool is_shared =
          std::any_of(one.paths.begin(), one.paths.end(), [&](const DicomOpticalPath& path) {
            return PlaceOf(before.paths, path) < before.paths.size();
          });
      if (!is_shared && one.tiling == before.tiling) continue;
      Heights heights;
      heights.Add(other);
      heights.Add(parts);
      return Unimplemented(Both(before, one), " of the series have ", SizeOfLevel(before.tiling),
                           " and ", SizeOfLevel(one.tiling),
                           ": focal planes, optical paths or copies: leave one in the folder",
                           FocalPlanesText(heights));
    }
    levels.back().push_back(std::move(parts));
  }
  return levels;
}

/// The optical paths of the first level, which every other must have too.
StatusOr<OpticalPaths> PathsOf(const std::vector<LevelInstances>& levels) {
  OpticalPaths paths;
  for (const LevelInstances& level : levels) {
    std::size_t count = 0;
    for (const LevelParts& parts : level) {
      for (const DicomOpticalPath& path : FirstOf(parts).paths) {
        if (&level == &levels.front()) paths.push_back(path);
        count += PlaceOf(paths, path) < paths.size() ? 1 : 0;
      }
    }
    if (count == paths.size()) continue;
    return InvalidArgument("instance ", FirstOf(level).number, ": a level of ",
                           SizeOfLevel(FirstOf(level).tiling), " has ", count, " of the ",
                           paths.size(), " optical paths (0048,0105) of the largest");
  }
  const std::uint32_t samples = FirstOf(levels.front()).tiling.samples;
  if (paths.size() == 1 || samples == 1) return paths;
  return Unimplemented("instance ", FirstOf(levels.front()).number, ": ", paths.size(),
                       " optical paths (0048,0105) of ", samples,
                       " samples (0028,0002): one, or several of one sample, are read: ",
                       kHowToChoose, kOpticalPathColumn);
}

/// Descriptions ("DAPI"), or identifiers where not all are described; none for one path.
std::vector<std::string> PathNamesOf(const OpticalPaths& paths) {
  if (paths.size() == 1) return {};
  std::vector<std::string> names, identifiers;
  for (const DicomOpticalPath& path : paths) {
    names.push_back(path.description);
    identifiers.push_back(path.identifier);
  }
  return CheckChannelNames(names).ok() ? names : UniqueChannelNames(identifiers, paths.size());
}

StatusOr<TiffPyramid> PyramidOf(std::vector<PlacedInstance> instances, const SlideChoice& choice) {
  std::vector<LevelParts> levels = GroupParts(std::move(instances));
  for (LevelParts& parts : levels) {
    PB_RETURN_IF_ERROR(CheckParts(parts));
    PB_RETURN_IF_ERROR(PlaceFull(parts));
  }
  if (!choice.optical_path.empty()) {
    PB_RETURN_IF_ERROR(ChoosePath(choice.optical_path, levels));
  }
  if (choice.focal_plane) PB_RETURN_IF_ERROR(ChooseFocalPlane(*choice.focal_plane, levels));
  PB_ASSIGN_OR_RETURN(const auto grouped, GroupLevels(std::move(levels)));
  PB_ASSIGN_OR_RETURN(const OpticalPaths paths, PathsOf(grouped));
  const DicomInstance& first = FirstOf(grouped.front());
  TiffPyramid pyramid;
  pyramid.layout.kind = "dicom-wsi";
  pyramid.layout.channels = static_cast<int>(first.tiling.samples * paths.size());
  pyramid.layout.channel_names = PathNamesOf(paths);
  pyramid.layout.spacing = SpacingOfMpp(first.mpp_y, first.mpp_x);
  pyramid.layout.objective_power = first.objective_power;
  for (const LevelInstances& instance : grouped) {
    const DicomInstance& one = FirstOf(instance);
    PB_ASSIGN_OR_RETURN(TiffLevel level, LevelOf(instance, paths));
    const TiffDirectory& full =
        pyramid.levels.empty() ? level.directory : pyramid.levels.front().directory;
    const bool is_first = pyramid.levels.empty();
    if (one.tiling.samples != first.tiling.samples ||
        (!is_first && !IsReducedFrom(full, level.directory))) {
      return InvalidArgument(Both(first, one), " of ", SizeOfLevel(first.tiling), " and of ",
                             SizeOfLevel(one.tiling),
                             " are no levels of one image: other proportions or samples "
                             "(0048,0006), (0048,0007), (0028,0002)");
    }
    pyramid.layout.levels.push_back(LayoutOf(level.directory, full));
    pyramid.levels.push_back(std::move(level));
  }
  return pyramid;
}

StatusOr<TiffPyramid> ReadPyramid(const StoredParts& files, const SlideChoice& choice) {
  if (files.size() > kMaxInstances) {
    return InvalidArgument("a series of ", files.size(), " instances, at most ", kMaxInstances);
  }
  std::vector<PlacedInstance> instances;
  std::uint64_t begin = 0;
  for (const auto& file : files) {
    PB_ASSIGN_OR_RETURN(DicomInstance instance, ReadDicomInstance(file));
    instances.push_back({std::move(instance), begin});
    begin += file->size_bytes();
  }
  return PyramidOf(std::move(instances), choice);
}

}  // namespace

std::optional<DicomSlideName> DicomSlideNameOf(const Folders& allowed, const std::string& path) {
  if (!IsRegularFile(allowed, path)) return std::nullopt;
  auto file = zarr::OpenStoredFile(allowed, path);
  return file.ok() ? DicomSlideNameOf(*std::move(file)) : std::nullopt;
}

StatusOr<std::vector<std::string>> DicomSlideFiles(const Folders& allowed,
                                                   const std::string& path) {
  const auto named = DicomSlideNameOf(allowed, path);
  if (!named || !named->is_level || named->series.empty()) return std::vector<std::string>{path};
  const std::string folder = std::filesystem::path(path).parent_path().string();
  PB_ASSIGN_OR_RETURN(const auto names,
                      ListFolder(allowed, folder.empty() ? "." : folder, kMaxDicomFolderNames + 1));
  if (names.size() > kMaxDicomFolderNames) {
    return ErrorAbout(absl::StatusCode::kResourceExhausted, "open slide", path,
                      StrCat("its folder has more than ", kMaxDicomFolderNames,
                             " names: give every slide a folder of its own"));
  }
  std::vector<std::string> files;
  for (const std::string& name : names) {
    const std::string file = folder.empty() ? name : StrCat(folder, "/", name);
    if (name.starts_with(".") || !IsRegularFile(allowed, file)) continue;
    PB_ASSIGN_OR_RETURN(auto opened, zarr::OpenStoredFile(allowed, file));
    const auto other = DicomSlideNameOf(std::move(opened));
    if (other && other->is_level && other->series == named->series) files.push_back(file);
  }
  return files;
}

StatusOr<std::unique_ptr<ImageSource>> OpenDicomSlide(const Folders& allowed,
                                                      const std::string& path,
                                                      const ReadCaches& caches,
                                                      const SlideChoice& choice) {
  const auto named = DicomSlideNameOf(allowed, path);
  if (!named) {
    return ErrorAbout(absl::StatusCode::kUnimplemented, "open image", path,
                      "DICOM, but no whole-slide image: a CT, MR or PET series is ingested first "
                      "(`patchbay ingest FOLDER`)");
  }
  if (!named->is_level) {
    return ErrorAbout(absl::StatusCode::kUnimplemented, "open slide", path,
                      "ImageType (0008,0008) is not VOLUME: a label, overview or thumbnail of a "
                      "slide is never opened");
  }
  PB_ASSIGN_OR_RETURN(const auto files, DicomSlideFiles(allowed, path));
  const auto store = std::make_shared<JoinedFiles>(allowed, files, caches);
  auto parts = store->OpenParts();
  if (!parts.ok()) return About(parts.status(), "open slide", path);
  auto pyramid = ReadPyramid(*parts, choice);
  if (!pyramid.ok()) return About(pyramid.status(), "open slide", path);
  return MakeTiledImage(store, *Join(*std::move(parts)), *std::move(pyramid));
}

StatusOr<std::unique_ptr<ImageSource>> OpenChosenSlide(const Folders& allowed,
                                                       const std::string& path,
                                                       const SlideChoice& choice,
                                                       const ReadCaches& caches) {
  if (!choice.IsMade()) return OpenImage(allowed, path, caches);
  if (DicomSlideNameOf(allowed, path)) return OpenDicomSlide(allowed, path, caches, choice);
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "open slide", path,
                    StrCat("columns '", kFocalPlaneColumn, "' and '", kOpticalPathColumn,
                           "': it is no DICOM slide: leave the cells empty"));
}

}  // namespace patchbay::workers
