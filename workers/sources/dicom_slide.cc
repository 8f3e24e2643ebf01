#include "workers/sources/dicom_slide.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/os/folder_listing.h"
#include "workers/sources/dicom_instance.h"
#include "workers/sources/joined_files.h"
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

/// Parts of one level, in the order of their frames.
using LevelParts = std::vector<PlacedInstance>;

std::string SizeOfLevel(const DicomTiling& tiling) {
  return StrCat(tiling.height, " x ", tiling.width, " pixels");
}

/// "instances 3 and 4".
std::string Both(const DicomInstance& a, const DicomInstance& b) {
  return StrCat("instances ", a.number, " and ", b.number);
}

Status CheckParts(const LevelParts& parts, std::size_t cells) {
  const DicomInstance& first = parts.front().instance;
  std::uint64_t frames = 0;
  for (const PlacedInstance& part : parts) {
    const DicomInstance& one = part.instance;
    if (one.tiling != first.tiling) {
      return InvalidArgument(Both(first, one),
                             " of a concatenation (0020,9161) differ in size, tiles or samples");
    }
    if (one.first_frame != frames) {
      return InvalidArgument("instance ", one.number, " of a concatenation begins at frame ",
                             one.first_frame, " (0020,9228), and those before it have ", frames,
                             ": is a part missing");
    }
    frames += one.frames.offset.size();
  }
  if (first.tiling.is_sparse || frames == cells) return absl::OkStatus();
  return InvalidArgument("instance ", first.number, ": the parts have ", frames,
                         " frames (0028,0008) of TILED_FULL for ", cells,
                         " tiles: is a part missing, or are there focal planes");
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
  directory.icc_profile = part.instance.icc_profile;
  if (directory.icc_profile) directory.icc_profile->offset += part.begin;
  return directory;
}

StatusOr<TiffPieces> PiecesOf(const LevelParts& parts, std::size_t cells) {
  const DicomTiling& tiling = parts.front().instance.tiling;
  const std::size_t planes = tiling.planar == 2 ? tiling.samples : 1;
  TiffPieces pieces;
  pieces.offset.resize(cells * planes);
  pieces.size_bytes.resize(cells * planes);
  std::size_t count = 0;
  for (const auto& [instance, begin] : parts) {
    for (std::size_t i = 0; i < instance.frames.offset.size(); ++i, ++count) {
      const std::size_t cell = tiling.is_sparse ? instance.cells[i] : count;
      if (pieces.size_bytes[cell] != 0) {
        return Unimplemented(
            "instance ", instance.number, ": frame ", i + 1, " lies where another does: several ",
            "focal planes or optical paths are not read: extract one into a series of its own");
      }
      const std::uint64_t size = instance.frames.size_bytes[i] / planes;
      for (std::size_t plane = 0; plane < planes; ++plane) {
        pieces.offset[plane * cells + cell] = begin + instance.frames.offset[i] + plane * size;
        pieces.size_bytes[plane * cells + cell] = size;
      }
    }
  }
  return pieces;
}

StatusOr<TiffLevel> LevelOf(const LevelParts& parts) {
  TiffLevel level;
  level.directory = DirectoryOf(parts.front());
  const TiffDirectory& d = level.directory;
  const auto cells = static_cast<std::size_t>(d.PieceRows() * d.PieceColumns());
  PB_RETURN_IF_ERROR(CheckParts(parts, cells));
  PB_ASSIGN_OR_RETURN(const TiffPieces pieces, PiecesOf(parts, cells));
  level.pieces = TiffPieceTable(pieces);
  level.planes = d.planar == 2 ? static_cast<int>(d.samples) : 1;
  const auto compression = static_cast<TiffCompression>(d.compression);
  if (compression == TiffCompression::kNone) return level;
  level.has_item_heads = true;
  level.is_lossless = parts.front().instance.tiling.is_lossless;
  if (compression == TiffCompression::kDicomJpegLs) return level;
  level.format = tiles::TileFormat{
      compression == TiffCompression::kJpeg ? tiles::TileCodec::kJpeg : tiles::TileCodec::kJpeg2000,
      static_cast<TiffPhotometric>(d.photometric) == TiffPhotometric::kYCbCr, ""};
  return level;
}

/// The instances by level, the largest first.
StatusOr<std::vector<LevelParts>> GroupLevels(std::vector<PlacedInstance> instances) {
  std::map<std::string, LevelParts> grouped;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const std::string& uid = instances[i].instance.concatenation;
    grouped[uid.empty() ? StrCat("#", i) : uid].push_back(std::move(instances[i]));
  }
  std::vector<LevelParts> levels;
  for (auto& [uid, parts] : grouped) {
    std::stable_sort(parts.begin(), parts.end(),
                     [](const PlacedInstance& a, const PlacedInstance& b) {
                       return a.instance.first_frame < b.instance.first_frame;
                     });
    levels.push_back(std::move(parts));
  }
  const auto tiling = [](const LevelParts& parts) -> const DicomTiling& {
    return parts.front().instance.tiling;
  };
  std::stable_sort(levels.begin(), levels.end(), [&](const LevelParts& a, const LevelParts& b) {
    return tiling(a).width > tiling(b).width;
  });
  for (std::size_t i = 1; i < levels.size(); ++i) {
    const DicomInstance& finer = levels[i - 1].front().instance;
    const DicomInstance& coarser = levels[i].front().instance;
    if (finer.tiling.width > coarser.tiling.width) continue;
    return Unimplemented(Both(finer, coarser), " of the series have ", SizeOfLevel(finer.tiling),
                         " and ", SizeOfLevel(coarser.tiling),
                         ": focal planes, optical paths or copies: leave one in the folder");
  }
  return levels;
}

StatusOr<TiffPyramid> PyramidOf(std::vector<PlacedInstance> instances) {
  PB_ASSIGN_OR_RETURN(const auto grouped, GroupLevels(std::move(instances)));
  const DicomInstance& first = grouped.front().front().instance;
  TiffPyramid pyramid;
  pyramid.layout.kind = "dicom-wsi";
  pyramid.layout.channels = static_cast<int>(first.tiling.samples);
  pyramid.layout.spacing = SpacingOfMpp(first.mpp_y, first.mpp_x);
  pyramid.layout.objective_power = first.objective_power;
  for (const LevelParts& parts : grouped) {
    const DicomInstance& one = parts.front().instance;
    PB_ASSIGN_OR_RETURN(TiffLevel level, LevelOf(parts));
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

StatusOr<TiffPyramid> ReadPyramid(const StoredParts& files) {
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
  return PyramidOf(std::move(instances));
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
                                                      const ReadCaches& caches) {
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
  auto pyramid = ReadPyramid(*parts);
  if (!pyramid.ok()) return About(pyramid.status(), "open slide", path);
  return MakeTiledImage(store, *Join(*std::move(parts)), *std::move(pyramid));
}

}  // namespace patchbay::workers
