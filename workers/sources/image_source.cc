#include "workers/sources/image_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "workers/sources/dicom_slide.h"
#include "workers/sources/openslide_source.h"
#include "workers/sources/picture_source.h"
#include "workers/sources/scan_description.h"
#include "workers/sources/source_extent.h"
#include "workers/sources/tiff_index.h"
#include "workers/sources/tiff_source.h"
#include "workers/sources/zarr_source.h"

namespace patchbay::workers {
namespace {

enum class Content { kTiff, kDicom, kPicture, kOther };

Content Sniff(const zarr::StoredBytes& file) {
  std::array<std::byte, 132> head{};
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(file.size_bytes(), head.size()));
  if (!file.Read(0, std::span(head).first(n), "head").ok()) return Content::kOther;
  if (std::memcmp(head.data() + 128, "DICM", 4) == 0) return Content::kDicom;
  constexpr const char* kMarks[] = {"II\x2A\0", "MM\0\x2A", "II\x2B\0", "MM\0\x2B"};
  for (const char* mark : kMarks) {
    if (std::memcmp(head.data(), mark, 4) == 0) return Content::kTiff;
  }
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return IsPicture(text) ? Content::kPicture : Content::kOther;
}

/// How a file of a kind that is known but not read here gets into a stream; "" for others.
std::string_view RemedyFor(const zarr::StoredBytes& file) {
  struct Kind {
    std::size_t at;
    std::string_view mark, remedy;
  };
  constexpr std::string_view kVolume =
      ": a volume: `patchbay ingest` makes a store of it, which streams";
  constexpr Kind kKinds[] = {{0, "\x1F\x8B",
                              ": packed by gzip: a NIfTI volume (.nii.gz) is ingested first "
                              "(`patchbay ingest`), others are unpacked"},
                             {344, "n+1", kVolume},
                             {0, "NRRD", kVolume},
                             {0, "ObjectType", kVolume},
                             {0, "NDims", kVolume}};
  std::array<std::byte, 352> head{};
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(file.size_bytes(), head.size()));
  if (!file.Read(0, std::span(head).first(n), "head").ok()) return "";
  for (const Kind& kind : kKinds) {
    if (std::memcmp(head.data() + kind.at, kind.mark.data(), kind.mark.size()) == 0) {
      return kind.remedy;
    }
  }
  return "";
}

/// Whether stores lie in a folder, among its first few thousand names.
bool HoldsStores(const Folders& allowed, const std::string& folder) {
  constexpr std::size_t kMaxNames = 4096;
  const auto names = ListFolder(allowed, folder, kMaxNames);
  return names.ok() && std::any_of(names->begin(), names->end(), [&](const std::string& name) {
           return zarr::IsStore(allowed, StrCat(folder, "/", name));
         });
}

/// Vendors whose TIFFs look like plain pyramids and are not: overlapping tiles, several scanned
/// areas, focal planes. OpenSlide knows how to put them together.
bool NeedsOpenSlide(const std::optional<std::string>& vendor) {
  return vendor.has_value() && *vendor != "aperio" && *vendor != "generic-tiff";
}

bool IsAperio(const TiffIndex& index) {
  const TiffDirectory& first = index.directories().front();
  const auto description = index.ReadDescription(first);
  return first.tiled && description.ok() && IsAperioDescription(*description);
}

StatusOr<std::unique_ptr<ImageSource>> OpenTiff(const Folders& allowed, const std::string& path,
                                                std::shared_ptr<const zarr::StoredBytes> file,
                                                const ReadCaches& caches) {
  // OpenSlide's detection walks the file without our limits: it only gets files that are within
  // them, and the one format (NDPI over 4 GiB) that extends classic TIFF beyond them.
  const bool may_stretch = file->size_bytes() >= (std::uint64_t{1} << 32);
  const auto index = TiffIndex::Read(std::move(file));
  if (index.ok() && IsAperio(*index)) return OpenTiffImage(allowed, path, caches);
  if ((index.ok() || may_stretch) && NeedsOpenSlide(OpenSlideVendor(allowed, path))) {
    // Offsets of a stretched file have lost their upper halves.
    if (index.ok() && (index->big() || !may_stretch)) PB_RETURN_IF_ERROR(CheckTiffExtent(*index));
    return OpenOpenSlideImage(allowed, path);
  }
  return OpenTiffImage(allowed, path, caches);
}

}  // namespace

bool IsRgb(const ImageLayout& layout) {
  return layout.channels == 3 && layout.dtype == DType::kUint8 && layout.channel_names.empty();
}

StatusOr<tiles::TileFormat> ImageSource::TilesOf(int) const {
  return Unimplemented("an image of kind ", layout().kind, " has no tiles that can be kept");
}

StatusOr<std::unique_ptr<ImageSource>> OpenImage(const Folders& allowed, const std::string& path,
                                                 const ReadCaches& caches) {
  PB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(allowed, path, O_RDONLY | O_NONBLOCK));
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return FromErrno("stat", path, errno);
  if (S_ISDIR(st.st_mode)) {
    if (zarr::IsStore(allowed, path)) return OpenZarrImage(allowed, path, caches);
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "open image", path,
                      HoldsStores(allowed, path) ? "a folder of stores: name one of them"
                                                 : "a folder without Zarr metadata");
  }
  if (!S_ISREG(st.st_mode)) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "open image", path,
                      "not a file or folder");
  }
  PB_ASSIGN_OR_RETURN(auto file, zarr::OpenStoredFile(allowed, path));
  switch (Sniff(*file)) {
    case Content::kTiff:
      return OpenTiff(allowed, path, std::move(file), caches);
    case Content::kDicom:
      return OpenDicomSlide(allowed, path, caches);
    case Content::kPicture:
      return OpenPicture(path, std::move(file));
    case Content::kOther:
      break;
  }
  if (NeedsOpenSlide(OpenSlideVendor(allowed, path))) return OpenOpenSlideImage(allowed, path);
  return ErrorAbout(
      absl::StatusCode::kInvalidArgument, "open image", path,
      StrCat("neither a TIFF, a Zarr store, nor a slide OpenSlide knows", RemedyFor(*file)));
}

}  // namespace patchbay::workers
