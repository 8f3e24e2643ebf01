#include "workers/sources/volumes/structure_set.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dctk.h>

#include "runtime/core/strings.h"
#include "workers/sources/volumes/dicom_file.h"
#include "workers/sources/volumes/dicom_library.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kStructureSetClass = "1.2.840.10008.5.1.4.1.1.481.3";
/// How far a point may lie off its slice, in steps between slices: coordinates are rounded.
constexpr double kOffSlice = 0.1;
constexpr std::size_t kMaxNumberBytes = 20;  ///< a decimal string and its separator

Status RefuseStructureSet(std::string_view cause) {
  return InvalidArgument("read rtstruct: ", cause);
}

/// A closed contour in voxels of the image, x along rows.
struct Contour {
  std::int64_t slice = 0;
  std::vector<std::pair<double, double>> points;  ///< (x, y)
};

struct Structure {
  std::string name;
  std::vector<Contour> contours;
};

/// The structures of a file, and the box of voxels that they reach.
class StructureReader {
 public:
  StructureReader(const Affine& affine, const VolumeProgress& progress)
      : voxel_of_(affine), progress_(progress) {}

  Status Read(DcmItem& item) {
    PB_RETURN_IF_ERROR(ReadNames(item));
    for (long i = 0; DcmItem* drawn = DicomItem(item, 0x3006, 0x0039, i); ++i) {
      const auto number = DicomNumber(*drawn, 0x3006, 0x0084);
      const auto known = number ? place_.find(*number) : place_.end();
      if (known == place_.end()) {
        return RefuseStructureSet(StrCat("contours ", i + 1, ": of no structure that is listed"));
      }
      Structure& structure = structures_[known->second];
      for (long k = 0; DcmItem* contour = DicomItem(*drawn, 0x3006, 0x0040, k); ++k) {
        if (++contours_ > kMaxContours) {
          return RefuseStructureSet(StrCat("more than ", kMaxContours, " contours"));
        }
        if (progress_) PB_RETURN_IF_ERROR(progress_());
        PB_RETURN_IF_ERROR(AddFrame(frames_[known->second]));
        PB_RETURN_IF_ERROR(ReadContour(*contour, structure));
      }
    }
    return absl::OkStatus();
  }

  std::vector<Structure>& structures() { return structures_; }
  const std::map<std::string, std::uint64_t>& left_out() const { return left_out_; }
  const std::string& frame() const { return frame_; }
  const Vec3& lowest() const { return lowest_; }
  const Vec3& highest() const { return highest_; }

 private:
  Status ReadNames(DcmItem& item) {
    const std::string frame = DicomText(item, 0x0020, 0x0052);
    for (long i = 0; DcmItem* listed = DicomItem(item, 0x3006, 0x0020, i); ++i) {
      if (structures_.size() >= kMaxSegments) {
        return RefuseStructureSet(StrCat("more than ", kMaxSegments, " structures"));
      }
      const auto number = DicomNumber(*listed, 0x3006, 0x0022);
      if (!number || !place_.emplace(*number, structures_.size()).second) {
        return RefuseStructureSet(StrCat("structure ", i + 1, ": no number of its own"));
      }
      structures_.push_back({DicomText(*listed, 0x3006, 0x0026), {}});
      const std::string own = DicomText(*listed, 0x3006, 0x0024);
      frames_.push_back(own.empty() ? frame : own);
    }
    return structures_.empty() ? RefuseStructureSet("it lists no structures") : absl::OkStatus();
  }

  Status AddFrame(const std::string& frame) {
    if (frame_.empty()) frame_ = frame;
    if (frame.empty() || frame == frame_) return absl::OkStatus();
    return RefuseStructureSet(
        "structures of several frames of reference; export them by themselves");
  }

  Status ReadContour(DcmItem& item, Structure& structure) {
    const std::string type = DicomText(item, 0x3006, 0x0042);
    if (type != "CLOSED_PLANAR" && type != "CLOSEDPLANAR_XOR") {
      const bool is_known = type == "POINT" || type.starts_with("OPEN_");
      ++left_out_[is_known ? type : "another type"];
      return absl::OkStatus();
    }
    const double count = DicomNumber(item, 0x3006, 0x0046).value_or(0);
    if (!(count >= 3 && count <= kMaxContourPoints - points_)) {
      return RefuseStructureSet(StrCat("structure '", structure.name, "': a closed contour of ",
                                       count, " points; 3 or more, and at most ", kMaxContourPoints,
                                       " in all"));
    }
    points_ += static_cast<std::size_t>(count);
    const std::size_t numbers = 3 * static_cast<std::size_t>(count);
    OFString text;
    const bool is_read = item.findAndGetOFStringArray(DcmTagKey(0x3006, 0x0050), text).good() &&
                         text.size() <= numbers * kMaxNumberBytes;
    const std::vector<double> mm =
        is_read ? ToNumbers(std::string(text.c_str()), numbers) : std::vector<double>();
    if (mm.empty()) {
      return DataLoss("read rtstruct: structure '", structure.name, "': a contour's data are not ",
                      numbers, " numbers");
    }
    return Place(mm, structure);
  }

  Status Place(const std::vector<double>& mm, Structure& structure) {
    Contour contour;
    for (std::size_t i = 0; i < mm.size(); i += 3) {
      const Vec3 at = voxel_of_({mm[i], mm[i + 1], mm[i + 2]});
      if (i == 0) contour.slice = std::llround(std::clamp(at.z, -1e6, 1e6));
      const double off = at.z - static_cast<double>(contour.slice);
      if (!(std::abs(off) <= kOffSlice)) {
        return RefuseStructureSet(StrCat("structure '", structure.name, "': a contour at (", mm[i],
                                         ", ", mm[i + 1], ", ", mm[i + 2], ") mm lies ", off,
                                         " steps off slice ", contour.slice,
                                         " of the image: between its slices, or across them"));
      }
      lowest_ = {std::min(lowest_.x, at.x), std::min(lowest_.y, at.y), std::min(lowest_.z, at.z)};
      highest_ = {std::max(highest_.x, at.x), std::max(highest_.y, at.y),
                  std::max(highest_.z, at.z)};
      contour.points.emplace_back(at.x, at.y);
    }
    structure.contours.push_back(std::move(contour));
    return absl::OkStatus();
  }

  const VoxelOfPlace voxel_of_;
  const VolumeProgress& progress_;
  std::vector<Structure> structures_;
  std::vector<std::string> frames_;      ///< frames of reference, by structure
  std::map<double, std::size_t> place_;  ///< in structures_, by number
  std::map<std::string, std::uint64_t> left_out_;
  std::string frame_;
  std::size_t contours_ = 0, points_ = 0;
  Vec3 lowest_, highest_;
};

/// Sets the voxels of one slice whose centres an odd number of contours enclose.
void FillSlice(const std::vector<const Contour*>& contours, const Extent& size, std::uint8_t value,
               std::uint8_t* out) {
  std::vector<std::vector<double>> crossings(static_cast<std::size_t>(size.y));
  for (const Contour* contour : contours) {
    for (std::size_t i = 0; i < contour->points.size(); ++i) {
      const auto& a = contour->points[i];
      const auto& b = contour->points[(i + 1) % contour->points.size()];
      const double low = std::min(a.second, b.second), high = std::max(a.second, b.second);
      // Half-open, so that a vertex on a row counts once.
      const auto begin = static_cast<std::int64_t>(std::ceil(low));
      for (std::int64_t y = begin; static_cast<double>(y) < high; ++y) {
        const double part = (static_cast<double>(y) - a.second) / (b.second - a.second);
        crossings[static_cast<std::size_t>(y)].push_back(a.first + part * (b.first - a.first));
      }
    }
  }
  for (std::int64_t y = 0; y < size.y; ++y) {
    std::vector<double>& row = crossings[static_cast<std::size_t>(y)];
    std::sort(row.begin(), row.end());
    for (std::size_t i = 0; i + 1 < row.size(); i += 2) {
      const auto begin = static_cast<std::int64_t>(std::ceil(row[i]));
      const auto end = static_cast<std::int64_t>(std::ceil(row[i + 1]));
      std::fill(out + y * size.x + begin, out + y * size.x + end, value);
    }
  }
}

void FillStructure(const Structure& structure, const Extent& size, std::uint8_t value,
                   std::span<std::uint8_t> out) {
  std::map<std::int64_t, std::vector<const Contour*>> by_slice;
  for (const Contour& contour : structure.contours) by_slice[contour.slice].push_back(&contour);
  for (const auto& [slice, contours] : by_slice) {
    FillSlice(contours, size, value, out.data() + slice * size.y * size.x);
  }
}

}  // namespace

bool IsStructureSet(const Folders& allowed, const std::string& path) {
  if (!LooksLikeDicom(allowed, path)) return false;
  const auto file = ReadDicomFile(allowed, path);
  return file.ok() && file->sop_class == kStructureSetClass;
}

StatusOr<LabelVolume> ReadStructureSet(const Folders& allowed, const std::string& path,
                                       const Extent& size, const Affine& affine,
                                       const VolumeProgress& progress) {
  PB_ASSIGN_OR_RETURN(const DicomName opened, DicomName::OpenToRead(allowed, path));
  DcmFileFormat format;
  const Status loaded = LoadDicom(allowed, opened, DicomExtent::kAll, kMaxDicomValueBytes, format);
  if (!loaded.ok()) return DataLoss("read rtstruct: ", MessageOf(loaded));
  StructureReader reader(affine, progress);
  PB_RETURN_IF_ERROR(reader.Read(*format.getDataset()));
  // Whole voxels before the grid's first and behind its last, so that losses can be counted.
  const auto before = [](double lowest) { return std::llround(std::ceil(std::max(0.0, -lowest))); };
  const auto after = [](double highest, std::int64_t side) {
    return std::max<std::int64_t>(0, std::llround(std::ceil(highest)) - (side - 1));
  };
  const Vec3 &low = reader.lowest(), &high = reader.highest();
  const Point shift{before(low.z), before(low.y), before(low.x)};
  LabelVolume labels;
  labels.format = "rtstruct";
  labels.size = {size.z + shift.z + after(high.z, size.z), size.y + shift.y + after(high.y, size.y),
                 size.x + shift.x + after(high.x, size.x)};
  PB_RETURN_IF_ERROR(CheckVolumeSize(labels.size, "read rtstruct"));
  labels.affine = affine;
  labels.affine.origin = affine.At(-static_cast<double>(shift.x), -static_cast<double>(shift.y),
                                   -static_cast<double>(shift.z));
  labels.frame_of_reference = reader.frame();
  labels.left_out = reader.left_out();
  for (Structure& structure : reader.structures()) {
    labels.segments.push_back(structure.name);
    for (Contour& contour : structure.contours) {
      contour.slice += shift.z;
      for (auto& [x, y] : contour.points) {
        x += static_cast<double>(shift.x);
        y += static_cast<double>(shift.y);
      }
    }
  }
  labels.paint = [structures = std::move(reader.structures()), grid = labels.size](
                     std::size_t segment, std::uint8_t value, std::span<std::uint8_t> out) {
    FillStructure(structures[segment], grid, value, out);
    return absl::OkStatus();
  };
  return labels;
}

}  // namespace patchbay::workers
