#include "workers/sources/openslide_source.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <openslide/openslide.h>
#include <tiffio.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/os/file.h"
#include "runtime/os/file_identity.h"
#include "runtime/os/folder_listing.h"
#include "workers/sources/icc_profile.h"
#include "workers/sources/pixel_copy.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {
namespace {

constexpr int kMaxOpenSlideLevels = 32;
constexpr std::size_t kMaxIndexBytes = std::size_t{4} << 20;  ///< OpenSlide takes a quarter
constexpr std::int64_t kMaxSide = std::int64_t{1} << 26;
constexpr std::int64_t kMaxPatchPixels = std::int64_t{1} << 28;

/// One OpenSlide handle. Shared by the reads that use it, so that replacing it is safe.
using Handle = std::shared_ptr<openslide_t>;

struct OpenSlideScratch final : DecodeScratch {
  std::vector<std::uint32_t> argb;
};

/// OpenSlide reads TIFFs through libtiff, which prints warnings with file names.
void SilenceLibtiff() {
  static const bool is_silent = [] {
    TIFFSetWarningHandler(nullptr);
    TIFFSetErrorHandler(nullptr);
    return true;
  }();
  (void)is_silent;
}

/// The folder of a slide's other files, and the index file that names them.
struct Parts {
  std::string folder, index;
};

/// The further files that OpenSlide opens; empty without any. Hamamatsu's text files are recognised
/// by content, since OpenSlide does not check extensions.
Parts SlidePartsOf(const Folders& allowed, const std::string& path) {
  const std::filesystem::path file(path);
  if (file.extension() == ".mrxs") {
    const std::string folder = std::filesystem::path(file).replace_extension().string();
    return {folder, folder + "/Slidedat.ini"};
  }
  const auto text = ReadFile(allowed, path, kMaxIndexBytes);
  const bool has_beside =
      text.ok() && text->find("Virtual Microscope Specimen") != std::string::npos;
  return has_beside ? Parts{file.parent_path().string(), path} : Parts();
}

/// PermissionDenied when a line such as "FILE_0=../other/Data.dat" names a file elsewhere:
/// OpenSlide puts the folder before the name without a check.
Status CheckIndexOfParts(const Folders& allowed, const std::string& index) {
  const auto text = ReadFile(allowed, index, kMaxIndexBytes);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  PB_RETURN_IF_ERROR(text.status());
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line, '\n');) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos || line.find('/', equals) == std::string::npos) continue;
    std::string key = line.substr(0, equals);
    for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (key.find("file") == std::string::npos && key.find("image") == std::string::npos) continue;
    return ErrorAbout(absl::StatusCode::kPermissionDenied, "open slide", index,
                      "it names a file in another folder");
  }
  return absl::OkStatus();
}

/// OpenSlide opens by name and follows links, so every file that it may open is opened here first,
/// within the readable folders. A file replaced between this open and its own is not noticed
/// (README).
Status CheckNames(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string_view confined, allowed.Around(path, false));
  if (confined.empty()) return absl::OkStatus();
  PB_RETURN_IF_ERROR(OpenFile(allowed, path, O_RDONLY | O_NONBLOCK).status());
  const Parts parts = SlidePartsOf(allowed, path);
  if (!parts.index.empty()) PB_RETURN_IF_ERROR(CheckIndexOfParts(allowed, parts.index));
  if (parts.folder.empty()) return absl::OkStatus();
  const auto names = ListFolder(allowed, parts.folder);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  PB_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    PB_RETURN_IF_ERROR(
        OpenFile(allowed, StrCat(parts.folder, "/", name), O_RDONLY | O_NONBLOCK).status());
  }
  return absl::OkStatus();
}

/// The identity of each of a slide's files; without a value where it cannot be looked at.
using Identities = std::vector<std::optional<FileIdentity>>;

Identities IdentitiesOf(const Folders& allowed, const std::vector<std::string>& files) {
  Identities out;
  for (const std::string& file : files) out.push_back(IdentityAt(allowed, file));
  return out;
}

/// OpenSlide's words for an error, unless they name a file: nothing tells where its path ends.
std::string OpenSlideText(std::string_view error) {
  const bool names_file = error.find('/') != std::string_view::npos;
  return std::string(names_file ? "OpenSlide cannot read one of the slide's files" : error);
}

StatusOr<Handle> OpenHandle(const Folders& allowed, const std::string& path) {
  SilenceLibtiff();
  PB_RETURN_IF_ERROR(CheckNames(allowed, path));
  Handle handle(openslide_open(path.c_str()), [](openslide_t* h) {
    if (h != nullptr) openslide_close(h);
  });
  if (handle == nullptr) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "open slide", path,
                      "OpenSlide does not recognise the format");
  }
  if (const char* error = openslide_get_error(handle.get()); error != nullptr) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "open slide", path, OpenSlideText(error));
  }
  return handle;
}

std::optional<double> PositiveProperty(openslide_t* handle, const char* name) {
  const char* text = openslide_get_property_value(handle, name);
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || !std::isfinite(value) || value <= 0) return std::nullopt;
  return value;
}

std::optional<std::int64_t> CountProperty(openslide_t* handle, const char* name) {
  const char* text = openslide_get_property_value(handle, name);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_count = error == std::errc() && end == digits.data() + digits.size() && value >= 0;
  if (!is_count) return std::nullopt;
  return value;
}

/// The scanned area according to the file; nullopt if it is all of level 0 or not a part of it.
std::optional<Box> BoundsOf(openslide_t* handle) {
  Extent size;
  openslide_get_level0_dimensions(handle, &size.x, &size.y);
  const auto y = CountProperty(handle, OPENSLIDE_PROPERTY_NAME_BOUNDS_Y);
  const auto x = CountProperty(handle, OPENSLIDE_PROPERTY_NAME_BOUNDS_X);
  const auto height = CountProperty(handle, OPENSLIDE_PROPERTY_NAME_BOUNDS_HEIGHT);
  const auto width = CountProperty(handle, OPENSLIDE_PROPERTY_NAME_BOUNDS_WIDTH);
  if (!y || !x || !height || !width) return std::nullopt;
  const bool is_part = *y < size.y &&
                       *x<size.x&& * height <= size.y - *y&& * width <= size.x - *x&& * height> 0 &&
                       *width > 0;
  const Box bounds = Box2D(*y, *x, *height, *width);
  if (!is_part || bounds == WholeOf(size)) return std::nullopt;
  return bounds;
}

/// Premultiplied ARGB over a grey of `fill`.
void Flatten(const std::uint32_t* argb, const TensorView& out, std::uint8_t fill) {
  for (std::int64_t y = 0; y < out.shape[0]; ++y) {
    std::byte* p = out.data + y * out.stride_bytes[0];
    for (std::int64_t x = 0; x < out.shape[1]; ++x, p += out.stride_bytes[1], ++argb) {
      const std::uint32_t v = *argb;
      const std::uint32_t under = ((255 - (v >> 24)) * fill + 127) / 255;
      for (int c = 0; c < 3; ++c) {
        const std::uint32_t sample = ((v >> (16 - 8 * c)) & 0xFF) + under;
        p[c * out.stride_bytes[2]] = static_cast<std::byte>(sample > 255 ? 255 : sample);
      }
    }
  }
}

class OpenSlideImage final : public ImageSource {
 public:
  /// `opened`: of `files`, before the handle was opened.
  OpenSlideImage(const Folders& allowed, std::vector<std::string> files, Identities opened,
                 Handle handle, ImageLayout layout)
      : path_(files.front()),
        files_(std::move(files)),
        opened_(std::move(opened)),
        layout_(std::move(layout)),
        allowed_(allowed),
        handle_(std::move(handle)) {}

  /// Aborted, naming the file, when one of them changed since it was opened.
  Status CheckUnchanged() const {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const std::optional<FileIdentity> now = IdentityAt(allowed_, files_[i]);
      if (now == opened_[i]) continue;
      return ErrorAbout(absl::StatusCode::kAborted, "read slide", files_[i],
                        StrCat(zarr::HowItChanged(opened_[i].value_or(FileIdentity()), now)));
    }
    return absl::OkStatus();
  }

  const ImageLayout& layout() const override { return layout_; }
  /// OpenSlide's own cache of decoded tiles at its fullest.
  std::size_t MemoryBytes() const override { return std::size_t{32} << 20; }
  std::unique_ptr<DecodeScratch> MakeScratch() const override {
    return std::make_unique<OpenSlideScratch>();
  }

  /// OpenSlide returns profiles only from version 4 on, so the profile of a TIFF's first directory
  /// is read here; scanners put it there.
  StatusOr<std::shared_ptr<const ops::IccLookup>> ToSrgb() const override {
    PB_ASSIGN_OR_RETURN(const auto file, zarr::OpenStoredFile(allowed_, path_));
    const auto index = TiffIndex::Read(file);
    if (!index.ok()) return nullptr;
    return LookupOfTiff(*file, index->directories().front());
  }

  Status Fetch(int level, const Box& box, EncodedPatch& out) const override {
    if (level < 0 || level >= static_cast<int>(layout_.levels.size())) {
      return InvalidArgument("read patch: level ", level, " of ", layout_.levels.size());
    }
    PB_RETURN_IF_ERROR(CheckPatchBox(box));
    if (box.Pixels() > kMaxPatchPixels) {
      return InvalidArgument("read patch: ", box.ToString(), ": too large");
    }
    out.level = level;
    out.box = box;
    out.pieces.clear();
    return absl::OkStatus();
  }

  Status Decode(const EncodedPatch& patch, const TensorView& view, double fill,
                DecodeScratch& scratch) const override {
    auto* mine = dynamic_cast<OpenSlideScratch*>(&scratch);
    if (mine == nullptr || patch.level < 0 ||
        patch.level >= static_cast<int>(layout_.levels.size())) {
      return InvalidArgument("decode patch: the patch was fetched from another image");
    }
    PB_RETURN_IF_ERROR(CheckPatchBox(patch.box));
    PB_ASSIGN_OR_RETURN(const TensorView out, FlatPatchView(view, patch.box, layout_.channels));
    PB_ASSIGN_OR_RETURN(const Element grey, FillElement(fill));
    mine->argb.resize(static_cast<std::size_t>(patch.box.Pixels()));
    const double scale = layout_.levels[static_cast<std::size_t>(patch.level)].downsample;
    PB_ASSIGN_OR_RETURN(const Handle handle, Usable());
    openslide_read_region(handle.get(), mine->argb.data(),
                          std::llround(static_cast<double>(patch.box.x) * scale),
                          std::llround(static_cast<double>(patch.box.y) * scale), patch.level,
                          patch.box.width, patch.box.height);
    const char* error = openslide_get_error(handle.get());
    const std::string cause = error != nullptr ? OpenSlideText(error) : "";
    if (error != nullptr) Drop(handle);
    PB_RETURN_IF_ERROR(CheckUnchanged());
    if (error != nullptr) {
      return DataLoss("read patch: level ", patch.level, " row ", patch.box.y, " column ",
                      patch.box.x, ": openslide: ", cause);
    }
    Flatten(mine->argb.data(), out, static_cast<std::uint8_t>(grey[0]));
    return absl::OkStatus();
  }

 private:
  /// OpenSlide refuses everything after its first error, so a failed handle is replaced.
  StatusOr<Handle> Usable() const {
    const std::lock_guard lock(handle_mu_);
    if (handle_ == nullptr) {
      PB_ASSIGN_OR_RETURN(handle_, OpenHandle(allowed_, path_));
    }
    return handle_;
  }
  void Drop(const Handle& failed) const {
    const std::lock_guard lock(handle_mu_);
    if (handle_ == failed) handle_ = nullptr;
  }

  std::string path_;
  std::vector<std::string> files_;
  Identities opened_;
  ImageLayout layout_;
  const Folders allowed_;
  mutable std::mutex handle_mu_;
  mutable Handle handle_;  // guarded by handle_mu_
};

StatusOr<ImageLayout> ReadLayout(openslide_t* handle, const std::string& path) {
  ImageLayout layout;
  const char* vendor = openslide_get_property_value(handle, OPENSLIDE_PROPERTY_NAME_VENDOR);
  layout.kind = StrCat("openslide:", vendor != nullptr ? vendor : "unknown");
  const int levels = openslide_get_level_count(handle);
  if (levels < 1 || levels > kMaxOpenSlideLevels) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "open slide", path,
                      StrCat(levels, " levels: 1 to ", kMaxOpenSlideLevels, " are supported"));
  }
  for (int i = 0; i < levels; ++i) {
    LevelLayout level;
    openslide_get_level_dimensions(handle, i, &level.size.x, &level.size.y);
    level.downsample = openslide_get_level_downsample(handle, i);
    if (level.size.Empty() || level.size.x > kMaxSide || level.size.y > kMaxSide ||
        !(level.downsample > 0)) {
      return ErrorAbout(absl::StatusCode::kInvalidArgument, "open slide", path,
                        StrCat("level ", i, " of ", level.size.x, " x ", level.size.y,
                               " pixels: 1 to ", kMaxSide, " a side are supported"));
    }
    const auto side = [&](const char* which) {
      const std::string name = StrCat("openslide.level[", i, "].tile-", which);
      const auto stated = PositiveProperty(handle, name.c_str());
      return stated.has_value() && *stated <= 65536 ? static_cast<std::int64_t>(*stated) : 256;
    };
    level.chunk = Flat(side("height"), side("width"));
    layout.levels.push_back(level);
  }
  layout.spacing = SpacingOfMpp(PositiveProperty(handle, OPENSLIDE_PROPERTY_NAME_MPP_Y),
                                PositiveProperty(handle, OPENSLIDE_PROPERTY_NAME_MPP_X));
  layout.objective_power = PositiveProperty(handle, OPENSLIDE_PROPERTY_NAME_OBJECTIVE_POWER);
  return layout;
}

}  // namespace

std::optional<std::string> OpenSlideVendor(const Folders& allowed, const std::string& path) {
  SilenceLibtiff();
  if (!CheckNames(allowed, path).ok()) return std::nullopt;
  const char* vendor = openslide_detect_vendor(path.c_str());
  if (vendor == nullptr) return std::nullopt;
  return std::string(vendor);
}

std::vector<std::string> SlideFiles(const Folders& allowed, const std::string& path) {
  std::vector<std::string> files = {path};
  const std::string folder = SlidePartsOf(allowed, path).folder;
  if (folder.empty()) return files;
  const auto names = ListFolder(allowed, folder);
  if (!names.ok()) return files;
  for (const std::string& name : *names) {
    std::string file = StrCat(folder, "/", name);
    if (file != path && SizeOf(allowed, file).ok()) files.push_back(std::move(file));
  }
  return files;
}

StatusOr<std::optional<Box>> ScannedAreaOf(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const Handle handle, OpenHandle(allowed, path));
  return BoundsOf(handle.get());
}

StatusOr<std::unique_ptr<ImageSource>> OpenOpenSlideImage(const Folders& allowed,
                                                          const std::string& path) {
  std::vector<std::string> files = SlideFiles(allowed, path);
  Identities opened = IdentitiesOf(allowed, files);
  PB_ASSIGN_OR_RETURN(Handle handle, OpenHandle(allowed, path));
  PB_ASSIGN_OR_RETURN(ImageLayout layout, ReadLayout(handle.get(), path));
  auto image = std::make_unique<OpenSlideImage>(allowed, std::move(files), std::move(opened),
                                                std::move(handle), std::move(layout));
  PB_RETURN_IF_ERROR(image->CheckUnchanged());
  return std::unique_ptr<ImageSource>(std::move(image));
}

}  // namespace patchbay::workers
