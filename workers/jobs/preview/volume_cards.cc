#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/source/channel_names.h"
#include "workers/jobs/preview/cards.h"
#include "workers/plots/axes.h"

namespace patchbay::workers {
namespace {

using Voxel = Point;

constexpr double kLowHu = -160, kHighHu = 240;
constexpr std::int64_t kMaxVoxels = std::int64_t{1} << 24;
constexpr std::int64_t kMaxPictureSide = 1024;
constexpr double kOverlay = 0.5;  ///< weight of a label's colour

/// All voxels of one level, as doubles or as classes.
struct LevelVoxels {
  Extent size;
  std::vector<std::byte> bytes;
  DType dtype = DType::kInt16;

  double At(const Voxel& at) const {
    const auto i = static_cast<std::size_t>(IndexOf(size, at));
    if (dtype == DType::kFloat32) return reinterpret_cast<const float*>(bytes.data())[i];
    if (dtype == DType::kUint16) return reinterpret_cast<const std::uint16_t*>(bytes.data())[i];
    if (dtype == DType::kUint8) return static_cast<double>(bytes[i]);
    return reinterpret_cast<const std::int16_t*>(bytes.data())[i];
  }
};

/// The finest level of few enough voxels.
StatusOr<int> LevelOf(const ImageLayout& layout) {
  for (std::size_t i = 0; i < layout.levels.size(); ++i) {
    if (layout.levels[i].size.Pixels() <= kMaxVoxels) return static_cast<int>(i);
  }
  return InvalidArgument(
      "preview: its coarsest level is too large: `patchbay ingest` the volume again");
}

/// The voxels of the first channel.
StatusOr<LevelVoxels> Read(const ImageSource& image, int level, const AfterPiece& after_piece) {
  const ImageLayout& layout = image.layout();
  const auto channels = static_cast<std::size_t>(layout.channels);
  LevelVoxels voxels;
  voxels.size = layout.levels[static_cast<std::size_t>(level)].size;
  voxels.dtype = layout.dtype;
  const auto count = static_cast<std::size_t>(voxels.size.Pixels());
  const std::size_t element = SizeOf(layout.dtype);
  voxels.bytes.resize(count * channels * element);
  EncodedPatch encoded;
  encoded.after_piece = after_piece;
  PB_RETURN_IF_ERROR(image.Fetch(level, BoxAt({}, voxels.size), encoded));
  const TensorView view = ContiguousView<4>(
      voxels.bytes.data(), layout.dtype,
      {voxels.size.z, voxels.size.y, voxels.size.x, static_cast<std::int64_t>(layout.channels)});
  PB_RETURN_IF_ERROR(image.Decode(encoded, view, 0, *image.MakeScratch()));
  if (channels == 1) return voxels;
  for (std::size_t i = 1; i < count; ++i) {
    std::memcpy(voxels.bytes.data() + i * element, voxels.bytes.data() + i * channels * element,
                element);
  }
  voxels.bytes.resize(count * element);
  return voxels;
}

/// The labels of the overlay, and their names.
struct Overlay {
  LevelVoxels voxels;
  std::string text;
};

StatusOr<std::optional<Overlay>> OverlayOf(const Folders& allowed, const std::string& path,
                                           const std::string& set, int level, const Extent& size,
                                           const AfterPiece& after_piece) {
  PB_ASSIGN_OR_RETURN(const std::vector<zarr::LabelSet> sets, zarr::ReadLabelSets(allowed, path));
  if (set.empty() && sets.empty()) return std::optional<Overlay>();
  const std::string name = set.empty() ? sets.front().name : set;
  const auto opened = zarr::OpenLabelSet(allowed, path, name);
  if (!opened.ok()) {
    return Annotate(WithCode(opened.status(), absl::StatusCode::kInvalidArgument),
                    "preview: --labels");
  }
  PB_ASSIGN_OR_RETURN(const auto source, OpenImage(allowed, opened->path));
  const ImageLayout& layout = source->layout();
  const bool fits = layout.dtype == DType::kUint8 &&
                    static_cast<std::size_t>(level) < layout.levels.size() &&
                    layout.levels[static_cast<std::size_t>(level)].size == size;
  if (!fits) return DataLoss("preview: label set '", name, "': it does not match its image");
  Overlay overlay;
  PB_ASSIGN_OR_RETURN(overlay.voxels, Read(*source, level, after_piece));
  overlay.text = StrCat("labels: ", name);
  return std::optional(std::move(overlay));
}

bool IsShown(double label) { return label != 0 && label != plan::kIgnoreClass; }

/// The middle of the labelled voxels, else of the volume.
Voxel MiddleOf(const Extent& size, const std::optional<Overlay>& overlay) {
  Voxel sum{}, middle{size.z / 2, size.y / 2, size.x / 2};
  std::int64_t count = 0;
  for (std::int64_t i = 0; overlay && i < size.Pixels(); ++i) {
    const Voxel at = CellAt(size, i);
    if (!IsShown(overlay->voxels.At(at))) continue;
    sum = {sum.z + at.z, sum.y + at.y, sum.x + at.x};
    ++count;
  }
  if (count == 0) return middle;
  return {sum.z / count, sum.y / count, sum.x / count};
}

/// Draws slices of a volume whose voxels are `steps` large (z, y, x).
class Slicer {
 public:
  Slicer(const LevelVoxels& voxels, const std::optional<Overlay>& overlay,
         const std::array<double, 3>& steps)
      : voxels_(voxels), overlay_(overlay), steps_(steps) {}

  /// Rows along axis `down`, columns along `across`, the third axis at `at`. Superior is up.
  Picture Slice(std::size_t down, std::size_t across, const Voxel& at) const {
    const std::array<std::int64_t, 3> sides = {voxels_.size.z, voxels_.size.y, voxels_.size.x};
    const double least = std::min(steps_[down], steps_[across]);
    const auto pixels = [&](std::size_t axis) {
      const double length = static_cast<double>(sides[axis]) * steps_[axis] / least;
      return std::clamp<std::int64_t>(std::llround(length), 1, kMaxPictureSide);
    };
    Picture picture{pixels(down), pixels(across), {}};
    std::array<std::int64_t, 3> place = {at.z, at.y, at.x};
    for (std::int64_t row = 0; row < picture.height; ++row) {
      const std::int64_t from_top = down == 0 ? picture.height - 1 - row : row;
      place[down] = from_top * sides[down] / picture.height;
      for (std::int64_t column = 0; column < picture.width; ++column) {
        place[across] = column * sides[across] / picture.width;
        PutVoxel({place[0], place[1], place[2]}, picture);
      }
    }
    return picture;
  }

 private:
  void PutVoxel(const Voxel& at, Picture& picture) const {
    const double hu = voxels_.At(at);
    const double grey =
        std::isfinite(hu) ? std::clamp(255 * (hu - kLowHu) / (kHighHu - kLowHu), 0.0, 255.0) : 0;
    const double label = overlay_ ? overlay_->voxels.At(at) : 0;
    const Color color = ClassColor(static_cast<int>(label));
    const double weight = IsShown(label) ? kOverlay : 0;
    for (const std::uint8_t tint : {color.red, color.green, color.blue}) {
      picture.rgb.push_back(static_cast<std::uint8_t>((1 - weight) * grey + weight * tint));
    }
  }

  const LevelVoxels& voxels_;
  const std::optional<Overlay>& overlay_;
  std::array<double, 3> steps_;
};

double StepOf(const std::optional<AxisSpacing>& spacing) {
  return spacing && spacing->value > 0 ? spacing->Micrometres() * 1e-3 : 1;
}

}  // namespace

StatusOr<PatchCard> VolumeCardOf(const Folders& allowed, const std::string& path,
                                 const ImageSource& image, const std::string& set,
                                 const AfterPiece& after_piece) {
  const ImageLayout& layout = image.layout();
  PB_ASSIGN_OR_RETURN(const int level, LevelOf(layout));
  PB_ASSIGN_OR_RETURN(const LevelVoxels voxels, Read(image, level, after_piece));
  PB_ASSIGN_OR_RETURN(const auto overlay,
                      OverlayOf(allowed, path, set, level, voxels.size, after_piece));
  const Voxel middle = MiddleOf(voxels.size, overlay);
  const Spacing& s = layout.spacing;
  const std::array<double, 3> steps = {StepOf(s.z), StepOf(s.y), StepOf(s.x)};
  const Slicer slicer(voxels, overlay, steps);
  PatchCard card;
  card.name = std::filesystem::path(path).filename().string();
  card.pictures = {slicer.Slice(1, 2, middle), slicer.Slice(0, 2, middle),
                   slicer.Slice(0, 1, middle)};
  card.captions = {"axial", "coronal", "sagittal"};
  const Extent& full = layout.levels[0].size;
  card.facts = {StrCat(full.z, " x ", full.y, " x ", full.x, " voxels of ", NameOf(layout.dtype)),
                StrCat("spacing ", Digits(steps[0], 3), " x ", Digits(steps[1], 3), " x ",
                       Digits(steps[2], 3), s.z ? " mm" : " (unit unknown)"),
                StrCat("level ", level, ", z ", middle.z, " y ", middle.y, " x ", middle.x),
                overlay ? overlay->text : std::string("no labels")};
  const std::vector<std::string> names = ChannelNames(zarr::OwnAttributes(allowed, path));
  if (!names.empty()) card.facts.push_back(StrCat("channel ", names.front(), " of ", names.size()));
  return card;
}

}  // namespace patchbay::workers
