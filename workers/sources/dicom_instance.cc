#include "workers/sources/dicom_instance.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/source/mpp_range.h"
#include "workers/sources/dicom/dicom_elements.h"
#include "workers/sources/dicom_syntax.h"
#include "workers/sources/source_extent.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kSlideClass = "1.2.840.10008.5.1.4.1.1.77.1.6";

enum Tag : std::uint32_t {
  kImageType = 0x00080008,
  kSopClass = 0x00080016,
  kSliceSpacing = 0x00180088,
  kSeries = 0x0020000E,
  kInstanceNumber = 0x00200013,
  kConcatenation = 0x00209161,
  kConcatenationOffset = 0x00209228,
  kOrganization = 0x00209311,
  kSamples = 0x00280002,
  kPhotometric = 0x00280004,
  kPlanar = 0x00280006,
  kFrames = 0x00280008,
  kRows = 0x00280010,
  kColumns = 0x00280011,
  kPixelSpacing = 0x00280030,
  kBitsAllocated = 0x00280100,
  kRepresentation = 0x00280103,
  kBurnedIn = 0x00280301,
  kIccProfile = 0x00282000,
  kPixelMeasures = 0x00289110,
  kFocalOffset = 0x0040074A,
  kTotalColumns = 0x00480006,
  kTotalRows = 0x00480007,
  kOrigin = 0x00480008,
  kLabelInImage = 0x00480010,
  kOpticalPaths = 0x00480105,
  kPathIdentifier = 0x00480106,
  kPathDescription = 0x00480107,
  kLensPower = 0x00480112,
  kPathOfFrame = 0x00480207,
  kPlanePosition = 0x0048021A,
  kColumnPosition = 0x0048021E,
  kRowPosition = 0x0048021F,
  kFocalPlanes = 0x00480303,
  kShared = 0x52009229,
  kPerFrame = 0x52009230,
  kOffsetTable = 0x7FE00001,
};

/// "NumberOfFrames (0028,0008)", as errors say it.
std::string Named(std::string_view name, Tag tag) { return StrCat(name, " ", DicomTagName(tag)); }

std::vector<std::string_view> PartsOf(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find('\\');
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename T>
std::optional<T> NumberIn(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('+')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A whole image at a scanner's resolution is VOLUME; what shows the label or is small is not.
bool IsLevel(std::string_view image_type) {
  const auto parts = PartsOf(image_type);
  return parts.size() >= 3 && parts[2] == "VOLUME";
}

/// Reads one file into a DicomInstance, element by element.
class InstanceReader {
 public:
  explicit InstanceReader(DicomElements elements) : elements_(std::move(elements)) {}

  StatusOr<DicomInstance> Read() {
    DicomVisitor visitor;
    visitor.item = [this](DicomSequences within) { return Item(within); };
    visitor.value = [this](DicomSequences within, const DicomValue& value) -> StatusOr<bool> {
      PB_RETURN_IF_ERROR(within.empty() ? Value(value) : ValueWithin(within, value));
      return true;
    };
    const Status read = ReadAll(visitor);
    if (read.ok()) return std::move(out_);
    return Annotate(read, StrCat("instance ", out_.number));
  }

 private:
  Status ReadAll(const DicomVisitor& visitor) {
    PB_RETURN_IF_ERROR(elements_.Walk(visitor));
    PB_RETURN_IF_ERROR(CheckShape());
    PB_RETURN_IF_ERROR(CheckSamples());
    PB_RETURN_IF_ERROR(CheckPaths());
    PB_RETURN_IF_ERROR(out_.tiling.is_sparse ? PlaceSparse() : CheckFull());
    PB_RETURN_IF_ERROR(pixels_.size_bytes == kUndefinedLength ? FindFragments() : FindFrames());
    return CheckFileExtent(elements_.file_bytes(), end_);
  }

  Status Item(DicomSequences within) {
    if (within.size() != 1) return absl::OkStatus();
    if (within[0] == kOpticalPaths && out_.paths.size() >= kMaxPaths) {
      return Unimplemented("more than ", kMaxPaths, " optical paths ", DicomTagName(kOpticalPaths));
    }
    if (within[0] == kOpticalPaths) out_.paths.push_back({});
    if (within[0] != kPerFrame) return absl::OkStatus();
    if (places_.size() >= kMaxTiffPieces) {
      return InvalidArgument("more than ", kMaxTiffPieces, " frames ", DicomTagName(kPerFrame));
    }
    places_.push_back({});
    return absl::OkStatus();
  }

  Status Value(const DicomValue& value) {
    switch (value.tag) {
      case kSamples:
        return ToShort(value, samples_);
      case kPlanar:
        return ToShort(value, planar_);
      case kRows:
        return ToShort(value, rows_);
      case kColumns:
        return ToShort(value, columns_);
      case kBitsAllocated:
        return ToShort(value, bits_);
      case kRepresentation:
        return ToShort(value, representation_);
      case kTotalColumns:
        return ToLong(value, total_columns_);
      case kTotalRows:
        return ToLong(value, total_rows_);
      case kFocalPlanes:
        return ToLong(value, out_.focal_planes);
      case kConcatenationOffset:
        return ToLong(value, out_.first_frame);
      case kPhotometric:
        return ToText(value, photometric_);
      case kOrganization:
        return ToText(value, organization_);
      case kConcatenation:
        return ToText(value, out_.concatenation);
      case kInstanceNumber:
        return ToInstanceNumber(value);
      case kFrames:
        return ToFrames(value);
      case kBurnedIn:
        return Refuse(value, "BurnedInAnnotation");
      case kLabelInImage:
        return Refuse(value, "SpecimenLabelInImage");
      case kOffsetTable:
        offset_table_ = value;
        return absl::OkStatus();
      case kDicomPixels:
        pixels_ = value;
        return absl::OkStatus();
      default:
        return absl::OkStatus();
    }
  }

  Status ValueWithin(DicomSequences within, const DicomValue& value) {
    if (within.size() == 1 && within[0] == kOpticalPaths && value.tag == kIccProfile) {
      constexpr std::uint16_t kUndefinedType = 7;
      out_.paths.back().icc_profile =
          TiffEntry{34675, kUndefinedType, value.size_bytes, value.offset};
    } else if (within.size() == 1 && within[0] == kOpticalPaths && value.tag == kLensPower) {
      std::string text;
      PB_RETURN_IF_ERROR(ToText(value, text));
      const auto power = NumberIn<double>(text);
      if (power && *power > 0) out_.objective_power = power;
    } else if (within.size() == 1 && within[0] == kOpticalPaths && value.tag == kPathIdentifier) {
      return ToText(value, out_.paths.back().identifier);
    } else if (within.size() == 1 && within[0] == kOpticalPaths && value.tag == kPathDescription) {
      return ToText(value, out_.paths.back().description);
    } else if (within.size() == 2 && within[1] == kPathOfFrame && value.tag == kPathIdentifier) {
      return ToPath(value, within[0] == kPerFrame ? places_.back().path : shared_path_);
    } else if (within.back() == kPlanePosition && value.tag == kFocalOffset) {
      return ToHeight(value, within[0] == kPerFrame ? places_.back().focal_um : shared_focal_um_);
    } else if (within.size() == 1 && within[0] == kOrigin && value.tag == kFocalOffset) {
      return ToHeight(value, shared_focal_um_);
    } else if (within.back() == kPixelMeasures && value.tag == kSliceSpacing) {
      return ToHeight(value, out_.focal_step_um, kUmPerMm);
    } else if (within.back() == kPixelMeasures && value.tag == kPixelSpacing && !out_.mpp_y) {
      return ToSpacing(value);
    } else if (within.size() == 2 && within[0] == kPerFrame && within[1] == kPlanePosition) {
      if (value.tag == kRowPosition) return ToLong(value, places_.back().row);
      if (value.tag == kColumnPosition) return ToLong(value, places_.back().column);
    }
    return absl::OkStatus();
  }

  Status ToText(const DicomValue& value, std::string& out) {
    PB_ASSIGN_OR_RETURN(out, elements_.Text(value));
    return absl::OkStatus();
  }
  Status ToShort(const DicomValue& value, std::uint16_t& out) {
    PB_ASSIGN_OR_RETURN(out, elements_.Short(value));
    return absl::OkStatus();
  }
  Status ToLong(const DicomValue& value, std::uint32_t& out) {
    PB_ASSIGN_OR_RETURN(out, elements_.Long(value));
    return absl::OkStatus();
  }

  Status ToInstanceNumber(const DicomValue& value) {
    std::string text;
    PB_RETURN_IF_ERROR(ToText(value, text));
    const auto number = NumberIn<std::uint32_t>(text);
    if (number) out_.number = StrCat(*number);
    return absl::OkStatus();
  }

  Status ToFrames(const DicomValue& value) {
    std::string text;
    PB_RETURN_IF_ERROR(ToText(value, text));
    const auto frames = NumberIn<std::uint64_t>(text);
    if (!frames || *frames == 0 || *frames > kMaxTiffPieces) {
      return InvalidArgument(Named("NumberOfFrames", kFrames), ": not 1 to ", kMaxTiffPieces);
    }
    frames_ = static_cast<std::size_t>(*frames);
    return absl::OkStatus();
  }

  /// OpticalPathSequence stands before the frames that name one of its items.
  Status ToPath(const DicomValue& value, std::uint8_t& out) {
    std::string identifier;
    PB_RETURN_IF_ERROR(ToText(value, identifier));
    const auto found =
        std::find_if(out_.paths.begin(), out_.paths.end(),
                     [&](const DicomOpticalPath& path) { return path.identifier == identifier; });
    if (found == out_.paths.end()) {
      return InvalidArgument("OpticalPathIdentifier ", DicomTagName(kPathIdentifier), " of frame ",
                             std::max<std::size_t>(1, places_.size()),
                             " is none of OpticalPathSequence ", DicomTagName(kOpticalPaths));
    }
    out = static_cast<std::uint8_t>(found - out_.paths.begin());
    return absl::OkStatus();
  }

  Status ToHeight(const DicomValue& value, std::optional<double>& um, double um_each = 1) {
    std::string text;
    PB_RETURN_IF_ERROR(ToText(value, text));
    const auto number = NumberIn<double>(text);
    if (number && std::isfinite(*number * um_each)) um = *number * um_each;
    return absl::OkStatus();
  }

  /// Millimetres down a column, then along a row.
  Status ToSpacing(const DicomValue& value) {
    std::string text;
    PB_RETURN_IF_ERROR(ToText(value, text));
    const auto parts = PartsOf(text);
    if (parts.size() != 2) return absl::OkStatus();
    const auto y = NumberIn<double>(parts[0]), x = NumberIn<double>(parts[1]);
    const auto is_plausible = [](const std::optional<double>& mm) {
      return mm && *mm * kUmPerMm >= kSmallestMpp && *mm * kUmPerMm <= kLargestMpp;
    };
    if (!is_plausible(y) || !is_plausible(x)) return absl::OkStatus();
    out_.mpp_y = *y * kUmPerMm;
    out_.mpp_x = *x * kUmPerMm;
    return absl::OkStatus();
  }

  Status Refuse(const DicomValue& value, std::string_view name) {
    std::string text;
    PB_RETURN_IF_ERROR(ToText(value, text));
    if (text != "YES") return absl::OkStatus();
    return Unimplemented(Named(name, static_cast<Tag>(value.tag)),
                         " is YES: its pixels may show names");
  }

  Status CheckShape() {
    if (pixels_.tag == 0) return InvalidArgument("it has no pixels ", DicomTagName(kDicomPixels));
    DicomTiling& t = out_.tiling;
    t.height = total_rows_;
    t.width = total_columns_;
    t.tile_height = rows_;
    t.tile_width = columns_;
    if (t.height < 1 || t.width < 1 || t.height > kMaxTiffSide || t.width > kMaxTiffSide) {
      return InvalidArgument(Named("TotalPixelMatrixRows", kTotalRows), " and Columns ",
                             DicomTagName(kTotalColumns), ": ", t.height, " x ", t.width,
                             ", not 1 to ", kMaxTiffSide);
    }
    if (rows_ < 1 || columns_ < 1 || samples_ < 1 ||
        t.tile_height * t.tile_width * samples_ > kMaxPieceBytes) {
      return InvalidArgument(Named("Rows", kRows), " and Columns ", DicomTagName(kColumns),
                             ": tiles of ", rows_, " x ", columns_);
    }
    if (Cells() > kMaxTiffPieces) {
      return InvalidArgument("more than ", kMaxTiffPieces, " tiles of ", rows_, " x ", columns_);
    }
    if (organization_ != "TILED_FULL" && organization_ != "TILED_SPARSE" &&
        !organization_.empty()) {
      return Unimplemented(Named("DimensionOrganizationType", kOrganization),
                           " is neither TILED_FULL nor TILED_SPARSE");
    }
    t.is_sparse = organization_ != "TILED_FULL";
    return absl::OkStatus();
  }

  Status CheckSamples() {
    DicomTiling& t = out_.tiling;
    PB_ASSIGN_OR_RETURN(t.compression, CompressionOf(elements_.transfer_syntax()));
    if (bits_ != 8 || representation_ != 0) {
      return Unimplemented(Named("BitsAllocated", kBitsAllocated), " is ", bits_,
                           ", of unsigned samples 8 are read");
    }
    t.samples = samples_;
    const bool is_flat = t.compression == TiffCompression::kNone;
    t.planar = is_flat && samples_ > 1 && planar_ == 1 ? 2 : 1;
    const bool is_jpeg = t.compression == TiffCompression::kJpeg;
    t.is_lossless = IsLosslessJpegLs(elements_.transfer_syntax());
    const bool is_jpeg_ls = t.compression == TiffCompression::kDicomJpegLs;
    const bool is_jpeg_2000 = !is_flat && !is_jpeg && !is_jpeg_ls;
    const bool is_ycbcr = photometric_ == "YBR_FULL_422" || photometric_ == "YBR_FULL";
    const bool is_transformed = photometric_ == "YBR_ICT" || photometric_ == "YBR_RCT";
    if (samples_ == 1 && !is_jpeg_2000 && photometric_.starts_with("MONOCHROME")) {
      const bool is_inverted = photometric_ == "MONOCHROME1";
      t.photometric = is_inverted ? TiffPhotometric::kMinIsWhite : TiffPhotometric::kMinIsBlack;
      return absl::OkStatus();
    }
    if (samples_ == 3 && (photometric_ == "RGB" || (is_transformed && is_jpeg_2000))) {
      return absl::OkStatus();  // OpenJPEG undoes the codestream's own transform
    }
    if (samples_ == 3 && is_ycbcr && (is_jpeg || is_jpeg_2000)) {
      t.photometric = TiffPhotometric::kYCbCr;
      if (is_jpeg_2000) t.compression = TiffCompression::kAperioJpeg2000YCbCr;
      return absl::OkStatus();
    }
    return Unimplemented(Named("PhotometricInterpretation", kPhotometric), " of ", samples_,
                         " samples ", DicomTagName(kSamples), " in transfer syntax ",
                         elements_.transfer_syntax(), " is not read");
  }

  std::uint64_t Columns() const {
    return (std::uint64_t{total_columns_} + columns_ - 1) / columns_;
  }
  std::uint64_t Cells() const {
    return Columns() * ((std::uint64_t{total_rows_} + rows_ - 1) / rows_);
  }

  /// " in each of 2 optical paths"; "" for one.
  std::string OfPaths() const {
    const std::size_t paths = out_.paths.size();
    return paths == 1 ? "" : StrCat(" in each of ", paths, " optical paths");
  }

  Status CheckPaths() {
    if (out_.paths.empty()) out_.paths.push_back({});
    std::set<std::string_view> seen;
    for (const DicomOpticalPath& path : out_.paths) {
      if (seen.insert(path.identifier).second) continue;
      return InvalidArgument("OpticalPathSequence ", DicomTagName(kOpticalPaths),
                             " has two items of one OpticalPathIdentifier ",
                             DicomTagName(kPathIdentifier));
    }
    return absl::OkStatus();
  }

  /// Parts of a concatenation, and focal planes, are counted by who has them all.
  Status CheckFull() {
    out_.focal_um = shared_focal_um_.value_or(0);
    if (!out_.concatenation.empty() || frames_ % (Cells() * out_.paths.size()) == 0) {
      return absl::OkStatus();
    }
    return InvalidArgument(Named("NumberOfFrames", kFrames), " is ", frames_,
                           " of TILED_FULL, and ", Cells(), " tiles cover ", total_rows_, " x ",
                           total_columns_, OfPaths());
  }

  Status PlaceSparse() {
    if (places_.size() != frames_) {
      return InvalidArgument("PerFrameFunctionalGroupsSequence ", DicomTagName(kPerFrame), " has ",
                             places_.size(), " items for ", frames_, " frames ",
                             DicomTagName(kFrames));
    }
    out_.cells.reserve(frames_);
    for (const Place& place : places_) {
      // From 1 on.
      const std::uint32_t y = place.row - 1, x = place.column - 1;
      if (y >= total_rows_ || x >= total_columns_ || y % rows_ != 0 || x % columns_ != 0) {
        return InvalidArgument(
            "frame ", out_.cells.size() + 1, ": its place ", static_cast<std::int32_t>(place.row),
            ", ", static_cast<std::int32_t>(place.column), " ", DicomTagName(kRowPosition), " ",
            DicomTagName(kColumnPosition), " is not on the grid of tiles");
      }
      out_.cells.push_back(y / rows_ * Columns() + x / columns_);
      out_.path_of.push_back(place.path == kOfAll ? shared_path_ : place.path);
      if (out_.path_of.back() == kOfAll && out_.paths.size() > 1) {
        return InvalidArgument("frame ", out_.cells.size(), ": it is of none of ",
                               out_.paths.size(), " optical paths ", DicomTagName(kOpticalPaths));
      }
      if (out_.path_of.back() == kOfAll) out_.path_of.back() = 0;
      out_.height_of.push_back(place.focal_um.value_or(shared_focal_um_.value_or(0)));
    }
    return absl::OkStatus();
  }

  /// Uncompressed frames lie one after another; samples that lie apart are pieces of their own.
  Status FindFrames() {
    const DicomTiling& t = out_.tiling;
    if (t.compression != TiffCompression::kNone) {
      return InvalidArgument("PixelData ", DicomTagName(kDicomPixels),
                             " of a compressed syntax has no fragments");
    }
    const std::uint64_t size = t.TileBytes(), all = size * frames_;
    if (pixels_.size_bytes != all + all % 2) {
      return InvalidArgument("PixelData ", DicomTagName(kDicomPixels), " has ", pixels_.size_bytes,
                             " bytes, ", frames_, " frames ", DicomTagName(kFrames), " have ", all);
    }
    for (std::size_t i = 0; i < frames_; ++i) {
      out_.frames.offset.push_back(pixels_.offset + i * size);
      out_.frames.size_bytes.push_back(size);
    }
    end_ = pixels_.offset + pixels_.size_bytes;
    return absl::OkStatus();
  }

  Status FindFragments() {
    if (out_.tiling.compression == TiffCompression::kNone) {
      return InvalidArgument("PixelData ", DicomTagName(kDicomPixels),
                             " of an uncompressed syntax has fragments");
    }
    PB_ASSIGN_OR_RETURN(const DicomElements::Item table, elements_.ItemAt(pixels_.offset));
    const std::uint64_t begin = pixels_.offset + kDicomItemBytes + table.size_bytes;
    if (table.tag != kDicomItem || begin > elements_.file_bytes()) {
      return InvalidArgument("PixelData ", DicomTagName(kDicomPixels), " has no offset table");
    }
    if (offset_table_.tag != 0) return FollowTable(offset_table_, 8, begin);
    // The offsets of a larger file have lost their upper halves.
    const bool is_whole = elements_.file_bytes() < kUndefinedLength;
    if (table.size_bytes == 0 || !is_whole) return CountFragments(begin);
    return FollowTable({kDicomPixels, pixels_.offset + kDicomItemBytes, table.size_bytes}, 4,
                       begin);
  }

  /// Without a table every fragment is a frame.
  Status CountFragments(std::uint64_t offset) {
    for (;;) {
      PB_ASSIGN_OR_RETURN(const DicomElements::Item item, elements_.ItemAt(offset));
      const std::size_t found = out_.frames.offset.size();
      if (item.tag == kDicomSequenceEnd && found == frames_) break;
      if (item.tag != kDicomItem || item.size_bytes == kUndefinedLength || found == frames_) {
        return InvalidArgument("PixelData ", DicomTagName(kDicomPixels), " has ", found,
                               item.tag == kDicomItem ? " fragments and more" : " fragments",
                               " for ", frames_, " frames ", DicomTagName(kFrames),
                               ": frames in several fragments are not read");
      }
      out_.frames.offset.push_back(offset);
      out_.frames.size_bytes.push_back(kDicomItemBytes + item.size_bytes);
      offset += kDicomItemBytes + item.size_bytes;
    }
    end_ = offset;
    return absl::OkStatus();
  }

  /// Frames reach to the next; that each is one fragment is checked when it is read, except of the
  /// last.
  Status FollowTable(const DicomValue& table, std::size_t width, std::uint64_t begin) {
    const std::string name = StrCat("the offset table ", DicomTagName(table.tag));
    if (table.size_bytes != frames_ * width) {
      return InvalidArgument(name, " has ", table.size_bytes / width, " offsets for ", frames_,
                             " frames ", DicomTagName(kFrames));
    }
    PB_ASSIGN_OR_RETURN(out_.frames.offset, elements_.Numbers(table.offset, frames_, width));
    std::vector<std::uint64_t>& offsets = out_.frames.offset;
    for (std::size_t i = 0; i < frames_; ++i) {
      const std::uint64_t least = i == 0 ? 0 : offsets[i - 1] - begin + kDicomItemBytes;
      if (offsets[i] < least || offsets[i] > elements_.file_bytes() - begin) {
        return InvalidArgument(name, ": frame ", i + 1, " at ", offsets[i],
                               i == 0 ? "" : " overlaps the one before, or",
                               " lies past the end of the file");
      }
      offsets[i] += begin;
    }
    const auto last = elements_.ItemAt(offsets.back());
    end_ = offsets.back() + kDicomItemBytes + (last.ok() ? last->size_bytes : 0);
    const auto after = elements_.ItemAt(end_);
    if (!last.ok() || !after.ok() || offsets.front() != begin || last->tag != kDicomItem ||
        after->tag != kDicomSequenceEnd) {
      return InvalidArgument(name,
                             ": its first and last frame are not the first and last fragment");
    }
    for (std::size_t i = 0; i < frames_; ++i) {
      out_.frames.size_bytes.push_back((i + 1 < frames_ ? offsets[i + 1] : end_) - offsets[i]);
    }
    return absl::OkStatus();
  }

  static constexpr std::size_t kMaxPaths = 64;
  static constexpr std::uint8_t kOfAll = 0xFF;  ///< no path of its own
  static constexpr double kUmPerMm = 1000;

  struct Place {
    std::uint32_t row = 0, column = 0;  ///< as stated: from 1 on
    std::uint8_t path = kOfAll;
    std::optional<double> focal_um;
  };

  DicomElements elements_;
  DicomInstance out_;
  std::uint16_t samples_ = 0, planar_ = 0, rows_ = 0, columns_ = 0, bits_ = 0, representation_ = 0;
  std::uint32_t total_rows_ = 0, total_columns_ = 0;
  std::string photometric_, organization_;
  std::size_t frames_ = 1;
  std::vector<Place> places_;
  std::uint8_t shared_path_ = kOfAll;  ///< shared by all frames
  std::optional<double> shared_focal_um_;
  DicomValue offset_table_, pixels_;
  std::uint64_t end_ = 0;  ///< where the pixels end
};

}  // namespace

std::optional<DicomSlideName> DicomSlideNameOf(std::shared_ptr<const zarr::StoredBytes> file) {
  auto elements = DicomElements::Open(std::move(file));
  if (!elements.ok()) return std::nullopt;
  DicomSlideName name;
  std::string sop_class;
  DicomVisitor visitor;
  visitor.item = [](DicomSequences) { return absl::OkStatus(); };
  visitor.value = [&](DicomSequences within, const DicomValue& value) -> StatusOr<bool> {
    if (!within.empty()) return true;
    if (value.tag > kSeries) return false;
    if (value.tag == kImageType) {
      PB_ASSIGN_OR_RETURN(const std::string type, elements->Text(value));
      name.is_level = IsLevel(type);
    } else if (value.tag == kSopClass) {
      PB_ASSIGN_OR_RETURN(sop_class, elements->Text(value));
      return sop_class == kSlideClass;
    } else if (value.tag == kSeries) {
      PB_ASSIGN_OR_RETURN(name.series, elements->Text(value));
    }
    return true;
  };
  const Status walked = elements->Walk(visitor);
  return walked.ok() && sop_class == kSlideClass ? std::optional(std::move(name)) : std::nullopt;
}

StatusOr<DicomInstance> ReadDicomInstance(std::shared_ptr<const zarr::StoredBytes> file) {
  PB_ASSIGN_OR_RETURN(DicomElements elements, DicomElements::Open(std::move(file)));
  return InstanceReader(std::move(elements)).Read();
}

}  // namespace patchbay::workers
