// Every element states its type: the writer does not need DCMTK's dictionary.
#include "workers/sources/volumes/segmentation_writer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcostrmb.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmdata/dcwcache.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/file.h"
#include "workers/sources/volumes/dicom_library.h"
#include "workers/sources/volumes/dicom_segmentation.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxIdentityBytes = 1000;
constexpr std::size_t kMaxLabelText = 64;  ///< characters of an LO
constexpr std::size_t kDecimalText = 16;   ///< characters of a DS
constexpr std::uint64_t kMaxPixelBytes = (std::uint64_t{1} << 32) - 2;
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

DcmTag Tag(unsigned group, unsigned element, DcmEVR type) {
  return {static_cast<Uint16>(group), static_cast<Uint16>(element), DcmVR(type)};
}

void Put(DcmItem& item, const DcmTag& tag, const std::string& text) {
  const bool is_put = text.empty() ? item.insertEmptyElement(tag).good()
                                   : item.putAndInsertOFStringArray(tag, text.c_str()).good();
  PB_CHECK(is_put);
}
void PutWord(DcmItem& item, const DcmTag& tag, std::size_t value) {
  PB_CHECK(item.putAndInsertUint16(tag, static_cast<Uint16>(value)).good());
}

DcmItem& ItemAt(DcmItem& item, unsigned group, unsigned element, std::size_t number = 0) {
  DcmItem* made = nullptr;
  item.findOrCreateSequenceItem(Tag(group, element, EVR_SQ), made, static_cast<long>(number));
  PB_CHECK(made != nullptr);
  return *made;
}

/// The shortest text that reads back as the value, if it fits, else the nearest that fits.
std::string Decimal(double value) {
  std::string text = StrCat(value);
  for (int digits = 15; text.size() > kDecimalText; --digits) {
    char shorter[40];
    std::snprintf(shorter, sizeof(shorter), "%.*g", digits, value);
    text = shorter;
  }
  return text;
}

std::string Decimals(std::initializer_list<double> values) {
  std::string text;
  for (const double value : values) text += StrCat(text.empty() ? "" : "\\", Decimal(value));
  return text;
}

/// A UID of the digest's first 128 bits (2.25, ISO/IEC 9834-8).
std::string UidOf(const std::string& content) {
  const Digest digest = Sha256Of(content);
  unsigned __int128 number = 0;
  for (std::size_t i = 0; i < 16; ++i) number = number << 8 | digest.bytes[i];
  std::string digits;
  for (; number > 0; number /= 10) digits.insert(0, 1, static_cast<char>('0' + number % 10));
  return StrCat("2.25.", digits.empty() ? "0" : digits);
}

void PutCode(DcmItem& item, const char* value, const char* scheme, const char* meaning) {
  Put(item, Tag(0x0008, 0x0100, EVR_SH), value);
  Put(item, Tag(0x0008, 0x0102, EVR_SH), scheme);
  Put(item, Tag(0x0008, 0x0104, EVR_LO), meaning);
}

/// A colour as DICOM has CIELab: D50, each part on 16 bits.
std::array<std::uint16_t, 3> LabOf(const std::array<std::uint8_t, 3>& rgb) {
  std::array<double, 3> linear{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double v = rgb[i] / 255.0;
    linear[i] = v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  }
  const auto& [r, g, b] = linear;
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f((0.4360747 * r + 0.3850649 * g + 0.1430804 * b) / 0.9642);
  const double y = f(0.2225045 * r + 0.7168786 * g + 0.0606169 * b);
  const double z = f((0.0139322 * r + 0.0971045 * g + 0.7141733 * b) / 0.8251);
  const auto part = [](double value, double low, double range) {
    const double at = std::clamp((value - low) / range, 0.0, 1.0);
    return static_cast<std::uint16_t>(std::lround(at * 65535));
  };
  return {part(116 * y - 16, 0, 100), part(500 * (x - y), -128, 255),
          part(200 * (y - z), -128, 255)};
}

struct Instance {
  std::string sop_class, uid;
};

/// An element of the series' identity as it stands there; longer ones are those of no scanner.
StatusOr<std::string> IdentityAt(DcmItem& from, const DicomElement& e) {
  std::string text = DicomText(from, e.group, e.element);
  if (text.size() <= kMaxIdentityBytes) return text;
  return InvalidArgument("write dicom seg: an element of the series' identity is longer than ",
                         kMaxIdentityBytes, " bytes");
}

Status CopyIdentity(DcmItem& from, DcmItem& to) {
  for (const DicomElement& e : kStudyElements) {
    PB_ASSIGN_OR_RETURN(const std::string text, IdentityAt(from, e));
    Put(to, {e.group, e.element, DcmVR(e.type)}, text);
  }
  for (const DicomElement& e : kOptionalElements) {
    PB_ASSIGN_OR_RETURN(const std::string text, IdentityAt(from, e));
    if (!text.empty()) Put(to, {e.group, e.element, DcmVR(e.type)}, text);
  }
  for (const unsigned element : {0x000du, 0x0052u}) {
    if (!DicomText(to, 0x0020, element).empty()) continue;
    return InvalidArgument("write dicom seg: the series has no ",
                           element == 0x000d ? "study" : "frame of reference");
  }
  return absl::OkStatus();
}

/// Instances of the series' files, in their order; `to` gets the identity of the first.
StatusOr<std::vector<Instance>> ReadHeaders(const Folders& allowed, const DicomSeries& series,
                                            DcmItem& to) {
  std::vector<Instance> instances;
  for (const DicomFile& file : series.files) {
    PB_ASSIGN_OR_RETURN(const DicomName opened, DicomName::OpenToRead(allowed, file.path));
    DcmFileFormat format;
    PB_RETURN_IF_ERROR(
        Annotate(LoadDicom(allowed, opened, DicomExtent::kHeader, kMaxDicomValueBytes, format),
                 "write dicom seg: a slice of the series"));
    DcmItem& item = *format.getDataset();
    if (instances.empty()) PB_RETURN_IF_ERROR(CopyIdentity(item, to));
    instances.push_back({file.sop_class, DicomText(item, 0x0008, 0x0018)});
    if (instances.back().uid.empty()) {
      return InvalidArgument("write dicom seg: a slice of the series has no instance UID");
    }
  }
  return instances;
}

std::string TimeText(std::time_t time, const char* form) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), form, &parts)};
}

void PutInstance(const WrittenSegmentation& s, DcmItem& item) {
  const std::string content = StrCat(s.content, "\n", s.title, "\n", s.made);
  Put(item, Tag(0x0008, 0x0008, EVR_CS), "DERIVED\\PRIMARY");
  Put(item, Tag(0x0008, 0x0016, EVR_UI), std::string(kSegmentationClass));
  Put(item, Tag(0x0008, 0x0018, EVR_UI), UidOf("instance\n" + content));
  Put(item, Tag(0x0008, 0x0023, EVR_DA), TimeText(s.made, "%Y%m%d"));
  Put(item, Tag(0x0008, 0x0033, EVR_TM), TimeText(s.made, "%H%M%S"));
  Put(item, Tag(0x0008, 0x0060, EVR_CS), "SEG");
  Put(item, Tag(0x0008, 0x0070, EVR_LO), "Patchbay");
  Put(item, Tag(0x0008, 0x103e, EVR_LO), s.title);
  Put(item, Tag(0x0008, 0x1090, EVR_LO), "labels export");
  Put(item, Tag(0x0018, 0x1000, EVR_LO), "1");
  Put(item, Tag(0x0018, 0x1020, EVR_LO), "1");
  Put(item, Tag(0x0020, 0x000e, EVR_UI), UidOf("series\n" + content));
  Put(item, Tag(0x0020, 0x0011, EVR_IS), "900");
  Put(item, Tag(0x0020, 0x0013, EVR_IS), "1");
  Put(item, Tag(0x0070, 0x0080, EVR_CS), "SEGMENTATION");
  Put(item, Tag(0x0070, 0x0081, EVR_LO), s.title);
  Put(item, Tag(0x0070, 0x0084, EVR_PN), "");
}

void PutPixelFormat(const DicomFile& file, std::size_t frames, DcmItem& item) {
  PutWord(item, Tag(0x0028, 0x0002, EVR_US), 1);
  Put(item, Tag(0x0028, 0x0004, EVR_CS), "MONOCHROME2");
  Put(item, Tag(0x0028, 0x0008, EVR_IS), std::to_string(frames));
  PutWord(item, Tag(0x0028, 0x0010, EVR_US), static_cast<std::size_t>(file.rows));
  PutWord(item, Tag(0x0028, 0x0011, EVR_US), static_cast<std::size_t>(file.columns));
  PutWord(item, Tag(0x0028, 0x0100, EVR_US), 1);
  PutWord(item, Tag(0x0028, 0x0101, EVR_US), 1);
  PutWord(item, Tag(0x0028, 0x0102, EVR_US), 0);
  PutWord(item, Tag(0x0028, 0x0103, EVR_US), 0);
  if (DicomText(item, 0x0028, 0x2110).empty()) Put(item, Tag(0x0028, 0x2110, EVR_CS), "00");
}

void PutSegments(const std::vector<WrittenSegment>& segments, DcmItem& item) {
  Put(item, Tag(0x0062, 0x0001, EVR_CS), "BINARY");
  Put(item, Tag(0x0062, 0x0013, EVR_CS), "NO");
  for (std::size_t i = 0; i < segments.size(); ++i) {
    DcmItem& segment = ItemAt(item, 0x0062, 0x0002, i);
    // The class table does not say what a class is in SNOMED's terms: "Tissue" is the widest.
    PutCode(ItemAt(segment, 0x0062, 0x0003), "85756007", "SCT", "Tissue");
    PutWord(segment, Tag(0x0062, 0x0004, EVR_US), i + 1);
    Put(segment, Tag(0x0062, 0x0005, EVR_LO), segments[i].name);
    Put(segment, Tag(0x0062, 0x0008, EVR_CS), "SEMIAUTOMATIC");
    Put(segment, Tag(0x0062, 0x0009, EVR_LO), "Patchbay label set");
    const auto lab = LabOf(segments[i].rgb);
    PB_CHECK(segment.putAndInsertUint16Array(Tag(0x0062, 0x000d, EVR_US), lab.data(), lab.size())
                 .good());
    PutCode(ItemAt(segment, 0x0062, 0x000f), "85756007", "SCT", "Tissue");
  }
}

void PutDimension(DcmItem& item, const std::string& uid, const DcmTagKey& index,
                  const DcmTagKey& group) {
  Put(item, Tag(0x0020, 0x9164, EVR_UI), uid);
  PB_CHECK(item.putAndInsertTagKey(Tag(0x0020, 0x9165, EVR_AT), index).good());
  PB_CHECK(item.putAndInsertTagKey(Tag(0x0020, 0x9167, EVR_AT), group).good());
}

void PutDimensions(const std::string& content, DcmItem& item) {
  const std::string uid = UidOf("dimensions\n" + content);
  Put(ItemAt(item, 0x0020, 0x9221), Tag(0x0020, 0x9164, EVR_UI), uid);
  PutDimension(ItemAt(item, 0x0020, 0x9222, 0), uid, {0x0062, 0x000b}, {0x0062, 0x000a});
  PutDimension(ItemAt(item, 0x0020, 0x9222, 1), uid, {0x0020, 0x0032}, {0x0020, 0x9113});
}

void PutReference(const Instance& instance, DcmItem& item) {
  Put(item, Tag(0x0008, 0x1150, EVR_UI), instance.sop_class);
  Put(item, Tag(0x0008, 0x1155, EVR_UI), instance.uid);
}

/// Where all frames lie in the same way.
void PutSharedGroups(const DicomFrame& first, double step_mm, DcmItem& item) {
  DcmItem& shared = ItemAt(item, 0x5200, 0x9229);
  Put(ItemAt(shared, 0x0020, 0x9116), Tag(0x0020, 0x0037, EVR_DS),
      Decimals({first.row->x, first.row->y, first.row->z, first.column->x, first.column->y,
                first.column->z}));
  DcmItem& measures = ItemAt(shared, 0x0028, 0x9110);
  Put(measures, Tag(0x0018, 0x0050, EVR_DS), Decimal(step_mm));
  Put(measures, Tag(0x0018, 0x0088, EVR_DS), Decimal(step_mm));
  Put(measures, Tag(0x0028, 0x0030, EVR_DS), Decimals({first.row_step, first.column_step}));
}

/// A frame: a slice with voxels of a segment.
struct SegFrame {
  std::size_t segment = 0, slice = 0;
};

std::vector<SegFrame> FramesOf(const WrittenSegmentation& s, std::size_t pixels) {
  std::vector<SegFrame> frames;
  for (std::size_t i = 0; i < s.segments.size(); ++i) {
    for (std::size_t k = 0; (k + 1) * pixels <= s.values.size(); ++k) {
      const auto* slice = s.values.data() + k * pixels;
      if (std::memchr(slice, s.segments[i].value, pixels) != nullptr) frames.push_back({i, k});
    }
  }
  return frames;
}

/// DICOM's limits, and the machine's: the bits are held three times.
Status CheckLimits(const WrittenSegmentation& s, std::size_t frames, std::size_t pixels) {
  for (const WrittenSegment& segment : s.segments) {
    if (segment.name.size() <= kMaxLabelText) continue;
    return InvalidArgument("write dicom seg: class '", segment.name, "': its name is longer than ",
                           kMaxLabelText, " characters");
  }
  if (frames == 0 || frames > static_cast<std::size_t>(kMaxDicomFrames)) {
    return InvalidArgument("write dicom seg: ", frames,
                           " slices with voxels of a segment, of 1 to ", kMaxDicomFrames);
  }
  const std::uint64_t bytes = (frames * pixels + 7) / 8;
  if (bytes > kMaxPixelBytes) {
    return InvalidArgument("write dicom seg: ", bytes, " bytes of frames, of up to ",
                           kMaxPixelBytes);
  }
  return CheckMemoryFits("write dicom seg", 3 * bytes, AvailableMemory());
}

class SegmentationFile {
 public:
  SegmentationFile(const DicomSeries& series, const std::vector<SliceRef>& order,
                   const WrittenSegmentation& s, const std::vector<Instance>& instances)
      : series_(series), order_(order), s_(s), instances_(instances) {}

  void PutFrames(const std::vector<SegFrame>& frames, DcmItem& item) const {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      PutFrame(frames[i], ItemAt(item, 0x5200, 0x9230, i));
    }
  }

  void PutReferences(DcmItem& item) const {
    DcmItem& reference = ItemAt(item, 0x0008, 0x1115);
    for (std::size_t i = 0; i < instances_.size(); ++i) {
      PutReference(instances_[i], ItemAt(reference, 0x0008, 0x114a, i));
    }
    Put(reference, Tag(0x0020, 0x000e, EVR_UI), series_.files.front().series);
  }

  /// Bits one after another, the first pixel lowest, frames not padded.
  void PutBits(const std::vector<SegFrame>& frames, std::size_t pixels, DcmItem& item) const {
    std::vector<Uint8> bits((frames.size() * pixels + 15) / 16 * 2);
    std::size_t bit = 0;
    for (const SegFrame& frame : frames) {
      const std::uint8_t value = s_.segments[frame.segment].value;
      const std::uint8_t* slice = s_.values.data() + frame.slice * pixels;
      for (std::size_t i = 0; i < pixels; ++i, ++bit) {
        if (slice[i] == value) bits[bit / 8] |= static_cast<Uint8>(1u << bit % 8);
      }
    }
    PB_CHECK(
        item.putAndInsertUint8Array(Tag(0x7fe0, 0x0010, EVR_OB), bits.data(), bits.size()).good());
  }

 private:
  void PutFrame(const SegFrame& frame, DcmItem& groups) const {
    const SliceRef& slice = order_[frame.slice];
    DcmItem& derivation = ItemAt(groups, 0x0008, 0x9124);
    DcmItem& source = ItemAt(derivation, 0x0008, 0x2112);
    PutReference(instances_[slice.file], source);
    if (series_.FileOf(slice).frames.size() > 1) {
      Put(source, Tag(0x0008, 0x1160, EVR_IS), std::to_string(slice.frame + 1));
    }
    Put(source, Tag(0x0028, 0x135a, EVR_CS), "YES");  // spatial locations preserved
    PutCode(ItemAt(source, 0x0040, 0xa170), "121322", "DCM",
            "Source image for image processing operation");
    PutCode(ItemAt(derivation, 0x0008, 0x9215), "113076", "DCM", "Segmentation");
    DcmItem& content = ItemAt(groups, 0x0020, 0x9111);
    auto indices = std::make_unique<DcmUnsignedLong>(Tag(0x0020, 0x9157, EVR_UL));
    const std::array<Uint32, 2> numbers = {static_cast<Uint32>(frame.segment + 1),
                                           static_cast<Uint32>(frame.slice + 1)};
    PB_CHECK(indices->putUint32Array(numbers.data(), numbers.size()).good());
    PB_CHECK(content.insert(indices.release(), OFTrue).good());
    const Vec3& place = *series_.FrameOf(slice).position;
    Put(ItemAt(groups, 0x0020, 0x9113), Tag(0x0020, 0x0032, EVR_DS),
        Decimals({place.x, place.y, place.z}));
    PutWord(ItemAt(groups, 0x0062, 0x000a), Tag(0x0062, 0x000b, EVR_US), frame.segment + 1);
  }

  const DicomSeries& series_;
  const std::vector<SliceRef>& order_;
  const WrittenSegmentation& s_;
  const std::vector<Instance>& instances_;
};

StatusOr<std::vector<std::byte>> BytesOf(DcmFileFormat& format) {
  PB_CHECK(format.validateMetaInfo(EXS_LittleEndianExplicit).good());
  std::vector<std::byte> block(kBlockBytes), out;
  DcmOutputBufferStream stream(block.data(), static_cast<offile_off_t>(block.size()));
  DcmWriteCache cache;
  format.transferInit();
  OFCondition written = EC_StreamNotifyClient;
  while (written == EC_StreamNotifyClient) {
    written = format.write(stream, EXS_LittleEndianExplicit, EET_ExplicitLength, &cache);
    void* begin = nullptr;
    offile_off_t count = 0;
    stream.flushBuffer(begin, count);
    const auto* bytes = static_cast<const std::byte*>(begin);
    out.insert(out.end(), bytes, bytes + count);
  }
  format.transferEnd();
  if (written.good()) return out;
  return Internal("write dicom seg: ", written.text());
}

double StepOf(const DicomSeries& series, const std::vector<SliceRef>& order) {
  const Vec3 reach = *series.FrameOf(order.back()).position - *series.FrameOf(order[0]).position;
  return Norm(reach) / static_cast<double>(std::max<std::size_t>(1, order.size() - 1));
}

}  // namespace

StatusOr<std::uint64_t> WriteDicomSegmentation(const Folders& allowed, const std::string& path,
                                               const DicomSeries& series,
                                               const std::vector<SliceRef>& order,
                                               const WrittenSegmentation& segmentation) {
  StartDicomLibrary();
  const DicomFile& first = series.FileOf(order.front());
  const auto pixels = static_cast<std::size_t>(first.rows * first.columns);
  const std::vector<SegFrame> frames = FramesOf(segmentation, pixels);
  PB_RETURN_IF_ERROR(CheckLimits(segmentation, frames.size(), pixels));
  DcmFileFormat format;
  DcmItem& item = *format.getDataset();
  PB_ASSIGN_OR_RETURN(const std::vector<Instance> instances, ReadHeaders(allowed, series, item));
  PutInstance(segmentation, item);
  PutPixelFormat(first, frames.size(), item);
  PutSegments(segmentation.segments, item);
  PutDimensions(segmentation.content, item);
  PutSharedGroups(series.FrameOf(order.front()), StepOf(series, order), item);
  const SegmentationFile file(series, order, segmentation, instances);
  file.PutFrames(frames, item);
  file.PutReferences(item);
  file.PutBits(frames, pixels, item);
  PB_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, BytesOf(format));
  PB_RETURN_IF_ERROR(WriteFileDurably(allowed, path, bytes, 0600));
  return bytes.size();
}

}  // namespace patchbay::workers
