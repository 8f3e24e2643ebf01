#include "workers/sources/volumes/dicom_segmentation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dctk.h>

#include "runtime/core/strings.h"
#include "workers/sources/volumes/dicom_file.h"
#include "workers/sources/volumes/dicom_library.h"

namespace patchbay::workers {
namespace {

/// Tolerances: the distance of a frame from a slice of the grid, in steps, and the difference of
/// two orientations.
constexpr double kOffGrid = 0.01, kMaxTurn = 1e-4;
constexpr double kLeastStepMm = 1e-3;

Status RefuseSegmentation(std::string_view cause) {
  return InvalidArgument("read dicom seg: ", cause);
}

/// The file's segments, and the segment of each frame.
struct Segments {
  std::vector<std::string> names;
  std::map<int, std::size_t> index;  ///< by segment number
  std::vector<int> of_frame;         ///< segment numbers
  double step_mm = 0;                ///< between slices, as stated; 0: not stated
  std::vector<std::uint8_t> bits;    ///< bits of all frames, one after another, low bit first
};

DcmItem* ItemOf(DcmItem& item, const DcmTagKey& key, long number = 0) {
  DcmItem* found = nullptr;
  return item.findAndGetSequenceItem(key, found, number).good() ? found : nullptr;
}

int NumberIn(DcmItem* item, const DcmTagKey& key) {
  Uint16 number = 0;
  return item != nullptr && item->findAndGetUint16(key, number).good() ? number : -1;
}

Status ReadNames(DcmItem& item, Segments& out) {
  for (long i = 0; DcmItem* segment = ItemOf(item, DcmTagKey(0x0062, 0x0002), i); ++i) {
    if (out.names.size() >= kMaxSegments) {
      return RefuseSegmentation(StrCat("more than ", kMaxSegments, " segments"));
    }
    const int number = NumberIn(segment, DcmTagKey(0x0062, 0x0004));
    if (number < 1 || !out.index.emplace(number, out.names.size()).second) {
      return RefuseSegmentation(StrCat("segment ", i + 1, ": no number of its own"));
    }
    out.names.push_back(DicomText(*segment, 0x0062, 0x0005));
  }
  return out.names.empty() ? RefuseSegmentation("it lists no segments") : absl::OkStatus();
}

Status ReadFrameSegments(DcmItem& item, std::size_t frames, Segments& out) {
  const DcmTagKey identification(0x0062, 0x000a), number(0x0062, 0x000b);
  DcmItem* shared = ItemOf(item, DcmTagKey(0x5200, 0x9229));
  for (std::size_t i = 0; i < frames; ++i) {
    DcmItem* groups = ItemOf(item, DcmTagKey(0x5200, 0x9230), static_cast<long>(i));
    DcmItem* named = groups == nullptr ? nullptr : ItemOf(*groups, identification);
    if (named == nullptr && shared != nullptr) named = ItemOf(*shared, identification);
    const int segment = NumberIn(named, number);
    if (!out.index.contains(segment)) {
      return RefuseSegmentation(StrCat("frame ", i + 1, ": of no segment that is listed"));
    }
    out.of_frame.push_back(segment);
  }
  if (shared == nullptr) return absl::OkStatus();
  DcmItem* measures = ItemOf(*shared, DcmTagKey(0x0028, 0x9110));
  if (measures == nullptr) return absl::OkStatus();
  for (const DcmTagKey& key : {DcmTagKey(0x0018, 0x0088), DcmTagKey(0x0018, 0x0050)}) {
    const std::string text = DicomText(*measures, key.getGroup(), key.getElement());
    const double step = text.empty() ? 0 : std::strtod(text.c_str(), nullptr);
    if (std::isfinite(step) && step > 0 && out.step_mm == 0) out.step_mm = step;
  }
  return absl::OkStatus();
}

Status ReadBits(DcmDataset& dataset, const DicomFile& file, Segments& out) {
  const Uint8* bytes = nullptr;
  unsigned long count = 0;
  const auto bits = static_cast<std::uint64_t>(file.rows * file.columns) * file.frames.size();
  if (DcmXfer(dataset.getOriginalXfer()).isEncapsulated()) {
    return Unimplemented(
        "read dicom seg: compressed frames, which are not read; export it uncompressed");
  }
  const bool is_there = dataset.findAndGetUint8Array(DCM_PixelData, bytes, &count).good();
  if (!is_there || bytes == nullptr || count < (bits + 7) / 8) {
    return DataLoss("read dicom seg: fewer bits than its frames have");
  }
  // Less than a row more may be padding, to an even number of bytes at least.
  if (const std::uint64_t surplus = count - (bits + 7) / 8;
      surplus > 1 && surplus >= static_cast<std::uint64_t>(file.columns + 7) / 8) {
    return DataLoss("read dicom seg: more bits than its frames have");
  }
  out.bits.assign(bytes, bytes + (bits + 7) / 8);
  return absl::OkStatus();
}

/// Whether it is a segmentation that is read, before its frames are looked at.
Status CheckKind(DcmItem& item, const DicomFile& file) {
  if (file.sop_class != kSegmentationClass) {
    return RefuseSegmentation(
        "a DICOM file that is not a segmentation (SEG); DICOM labels must be SEG");
  }
  const std::string type = DicomText(item, 0x0062, 0x0001);
  if (type != "BINARY") {
    return Unimplemented(
        "read dicom seg: ", type == "FRACTIONAL" ? "a fractional" : "not a binary",
        " segmentation: its voxels belong to a segment in part; export it as binary");
  }
  if (file.bits_allocated != 1 || file.samples != 1) {
    return RefuseSegmentation("binary, but not one bit per voxel");
  }
  return file.HasPixels() ? absl::OkStatus() : RefuseSegmentation("it has no frames");
}

StatusOr<Segments> ReadSegments(const Folders& allowed, const DicomFile& file) {
  PB_ASSIGN_OR_RETURN(const DicomName opened, DicomName::OpenToRead(allowed, file.path));
  DcmFileFormat format;
  const Status loaded = LoadDicom(allowed, opened, DicomExtent::kAll, kMaxDicomValueBytes, format);
  if (!loaded.ok()) return DataLoss("read dicom seg: ", MessageOf(loaded));
  DcmDataset& dataset = *format.getDataset();
  PB_RETURN_IF_ERROR(CheckKind(dataset, file));
  Segments segments;
  PB_RETURN_IF_ERROR(ReadNames(dataset, segments));
  PB_RETURN_IF_ERROR(ReadFrameSegments(dataset, file.frames.size(), segments));
  PB_RETURN_IF_ERROR(ReadBits(dataset, file, segments));
  return segments;
}

/// The grid that all frames lie on, and the slice of each.
struct FrameGrid {
  Extent size;
  Affine affine;
  std::vector<std::int64_t> slice_of;
};

Status CheckPlanes(const DicomFile& file) {
  const DicomFrame& first = file.frames.front();
  for (std::size_t i = 0; i < file.frames.size(); ++i) {
    const DicomFrame& frame = file.frames[i];
    if (!frame.position || !frame.row || !frame.column || !(frame.row_step > 0) ||
        !(frame.column_step > 0)) {
      return RefuseSegmentation(StrCat("frame ", i + 1, ": no position, orientation or spacing"));
    }
    const bool is_alike = Norm(*frame.row - *first.row) <= kMaxTurn &&
                          Norm(*frame.column - *first.column) <= kMaxTurn &&
                          frame.row_step == first.row_step &&
                          frame.column_step == first.column_step;
    if (!is_alike) {
      return RefuseSegmentation(StrCat("frame ", i + 1, ": another orientation or spacing"));
    }
  }
  const Vec3 normal = Cross(*first.row, *first.column);
  if (std::abs(Norm(normal) - 1) <= kMaxTurn) return absl::OkStatus();
  return RefuseSegmentation("its orientation is not two perpendicular directions");
}

/// The step of the grid: as stated where all frames lie on it, else the least between two.
double LeastStepOf(const std::vector<double>& places, double stated) {
  double least = 0;
  for (std::size_t i = 1; i < places.size(); ++i) {
    const double step = places[i] - places[i - 1];
    if (step > kLeastStepMm && (least == 0 || step < least)) least = step;
  }
  if (least == 0) return stated > 0 ? stated : 1;
  const double ratio = stated > 0 ? least / stated : 0;
  const bool holds = ratio >= 1 && std::abs(ratio - std::round(ratio)) <= kOffGrid;
  return holds ? stated : least;
}

StatusOr<FrameGrid> GridOf(const DicomFile& file, double stated_step_mm) {
  PB_RETURN_IF_ERROR(CheckPlanes(file));
  const DicomFrame& first = file.frames.front();
  const Vec3 normal = Cross(*first.row, *first.column);
  std::vector<double> places;
  for (const DicomFrame& frame : file.frames) places.push_back(Dot(*frame.position, normal));
  std::vector<double> sorted = places;
  std::sort(sorted.begin(), sorted.end());
  const double step = LeastStepOf(sorted, stated_step_mm);
  const double slices = std::round((sorted.back() - sorted.front()) / step) + 1;
  if (!(slices <= kMaxReadSide)) {
    return RefuseSegmentation(StrCat("frames over ", slices, " slices"));
  }
  FrameGrid grid;
  const auto lowest =
      static_cast<std::size_t>(std::min_element(places.begin(), places.end()) - places.begin());
  grid.affine = {*first.row * first.column_step, *first.column * first.row_step, normal * step,
                 *file.frames[lowest].position};
  grid.size = {static_cast<std::int64_t>(slices), file.rows, file.columns};
  PB_RETURN_IF_ERROR(CheckVolumeSize(grid.size, "read dicom seg"));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double at = (places[i] - sorted.front()) / step;
    const Vec3 off = *file.frames[i].position - grid.affine.At(0, 0, std::round(at));
    if (Norm(off) > kOffGrid * std::min({step, first.row_step, first.column_step})) {
      return RefuseSegmentation(
          StrCat("frame ", i + 1, ": ", Norm(off), " mm off the grid of the others"));
    }
    grid.slice_of.push_back(std::llround(at));
  }
  return grid;
}

/// Bits of the frames of one segment into voxels.
void PaintFrames(const Segments& segments, const FrameGrid& grid, int number, std::uint8_t value,
                 std::span<std::uint8_t> out) {
  const auto plane = static_cast<std::uint64_t>(grid.size.y * grid.size.x);
  for (std::size_t frame = 0; frame < grid.slice_of.size(); ++frame) {
    if (segments.of_frame[frame] != number) continue;
    std::uint8_t* to = out.data() + static_cast<std::uint64_t>(grid.slice_of[frame]) * plane;
    for (std::uint64_t i = 0; i < plane; ++i) {
      const std::uint64_t bit = frame * plane + i;
      if ((segments.bits[bit / 8] >> (bit % 8) & 1) != 0) to[i] = value;
    }
  }
}

}  // namespace

StatusOr<LabelVolume> ReadDicomSegmentation(const Folders& allowed, const std::string& path,
                                            const VolumeProgress& progress) {
  PB_ASSIGN_OR_RETURN(const DicomFile file, ReadDicomFile(allowed, path));
  PB_ASSIGN_OR_RETURN(Segments segments, ReadSegments(allowed, file));
  if (progress) PB_RETURN_IF_ERROR(progress());
  PB_ASSIGN_OR_RETURN(FrameGrid grid, GridOf(file, segments.step_mm));
  LabelVolume labels;
  labels.format = "dicom-seg";
  labels.size = grid.size;
  labels.affine = grid.affine;
  labels.segments = segments.names;
  labels.frame_of_reference = file.frame_of_reference;
  std::vector<int> numbers(segments.names.size());
  for (const auto& [number, index] : segments.index) numbers[index] = number;
  labels.paint = [segments = std::move(segments), grid = std::move(grid),
                  numbers = std::move(numbers)](std::size_t segment, std::uint8_t value,
                                                std::span<std::uint8_t> out) {
    PaintFrames(segments, grid, numbers[segment], value, out);
    return absl::OkStatus();
  };
  return labels;
}

}  // namespace patchbay::workers
