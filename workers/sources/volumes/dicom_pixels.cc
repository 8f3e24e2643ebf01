#include "workers/sources/volumes/dicom_pixels.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcfcache.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmjpeg/djcparam.h>
#include <dcmtk/dcmjpeg/djdijg12.h>
#include <dcmtk/dcmjpeg/djdijg16.h>
#include <dcmtk/dcmjpeg/djdijg8.h>
#include <sys/stat.h>

#include "runtime/core/status.h"
#include "runtime/core/strings.h"
#include "runtime/format/tiles/jpeg2000_decoder.h"
#include "workers/sources/flat_codecs.h"
#include "workers/sources/jpeg_ls.h"
#include "workers/sources/jpeg_markers.h"
#include "workers/sources/volumes/dicom_library.h"

namespace patchbay::workers {
namespace {

/// The data set's description of one grey frame.
struct DicomFrameShape {
  std::string transfer_syntax;
  std::int64_t rows = 0, columns = 0;
  int bits_allocated = 16;  ///< 8 or 16
  bool is_signed = false;
};

constexpr std::string_view kLossless14 = "1.2.840.10008.1.2.4.57";
constexpr std::string_view kLossless14First = "1.2.840.10008.1.2.4.70";
constexpr std::string_view kLosslessJpegLs = "1.2.840.10008.1.2.4.80";
/// A progressive image may repeat passes over the whole frame; more than this is an attack.
constexpr int kMaxScans = 128;

Status DamagedFrame(std::string_view codec, std::string_view cause) {
  return DataLoss(codec, ": ", cause);
}

Status CheckSize(const JpegMarkers& image, const DicomFrameShape& shape) {
  if (image.rows != shape.rows || image.columns != shape.columns || image.components != 1) {
    return DamagedFrame("jpeg", StrCat(image.columns, " x ", image.rows, " pixels of ",
                                       image.components, " components where the file states ",
                                       shape.columns, " x ", shape.rows, " of 1"));
  }
  if ((image.precision + 7) / 8 != shape.bits_allocated / 8) {
    return DamagedFrame("jpeg", StrCat("samples of ", image.precision,
                                       " bits where the file states ", shape.bits_allocated));
  }
  return absl::OkStatus();
}

/// The processes that a transfer syntax allows.
Status CheckSyntax(const JpegMarkers& image, const DicomFrameShape& shape) {
  const bool is_first = shape.transfer_syntax == kLossless14First;
  const bool is_lossless = is_first || shape.transfer_syntax == kLossless14;
  const bool is_allowed = is_lossless == (image.process == kJpegLossless) &&
                          image.process != kJpegLs && (!is_first || image.first == 1);
  if (!is_allowed) {
    return DamagedFrame("jpeg", "a coding process that its transfer syntax does not allow");
  }
  if (image.scans > kMaxScans) {
    return DamagedFrame("jpeg", StrCat("more than ", kMaxScans, " scans"));
  }
  return absl::OkStatus();
}

/// Runs one of DCMTK's decoders, which log libjpeg's warnings and continue.
template <typename Decoder>
class WarnedDecoder final : public Decoder {
 public:
  using Decoder::Decoder;
  void emitMessage(int level) const override { has_warned_ |= level < 0; }
  bool has_warned() const { return has_warned_; }

 private:
  mutable bool has_warned_ = false;
};

template <typename Decoder>
Status Decode(std::span<const std::byte> bytes, bool is_signed, std::span<std::byte> out) {
  const DJCodecParameter parameters(ECC_lossyYCbCr, EDC_photometricInterpretation, EUC_default,
                                    EPC_default);
  WarnedDecoder<Decoder> decoder(parameters, OFFalse);
  if (decoder.init().bad()) return Internal("jpeg: the decoder cannot be made");
  // DCMTK takes its input as not const, and does not write to it.
  auto* from = const_cast<Uint8*>(reinterpret_cast<const Uint8*>(bytes.data()));
  const OFCondition decoded =
      decoder.decode(from, static_cast<Uint32>(bytes.size()), reinterpret_cast<Uint8*>(out.data()),
                     static_cast<Uint32>(out.size()), is_signed ? OFTrue : OFFalse);
  if (decoded.bad()) return DamagedFrame("jpeg", decoded.text());
  return decoder.has_warned() ? DamagedFrame("jpeg", "corrupt codes") : absl::OkStatus();
}

/// A lossless image keeps the differences of samples: one that is wrong moves all after it, often
/// to values that its bits do not hold.
Status CheckRange(const JpegMarkers& image, bool is_signed, std::span<const std::byte> samples) {
  if (image.process != kJpegLossless || image.precision <= 8) return absl::OkStatus();
  for (std::size_t at = 0; at + 2 <= samples.size(); at += 2) {
    std::int16_t value = 0;
    std::memcpy(&value, samples.data() + at, 2);
    const int above = (is_signed ? value : static_cast<std::uint16_t>(value)) >> image.precision;
    if (above != 0 && !(is_signed && above == -1)) {
      return DamagedFrame("jpeg", StrCat("values of more than ", image.precision, " bits"));
    }
  }
  return absl::OkStatus();
}

std::uint32_t RleWordAt(std::span<const std::byte> bytes, std::size_t number) {
  std::array<unsigned char, 4> b{};
  std::memcpy(b.data(), bytes.data() + 4 * number, 4);
  return static_cast<std::uint32_t>(b[0]) | static_cast<std::uint32_t>(b[1]) << 8 |
         static_cast<std::uint32_t>(b[2]) << 16 | static_cast<std::uint32_t>(b[3]) << 24;
}

/// JPEG, all processes that DCMTK decodes: into rows x columns samples of bits_allocated. DataLoss
/// for an image that does not match the shape and the transfer syntax, that has surplus bytes, or
/// that the decoder warns about.
Status DecodeDicomJpeg(std::span<const std::byte> bytes, const DicomFrameShape& shape,
                       std::span<std::byte> out) {
  PB_ASSIGN_OR_RETURN(const JpegMarkers image, ReadJpegMarkers(bytes));
  PB_RETURN_IF_ERROR(CheckSize(image, shape));
  PB_RETURN_IF_ERROR(CheckSyntax(image, shape));
  PB_RETURN_IF_ERROR(CheckJpegCodes(image));
  if (image.precision <= 8) return Decode<DJDecompressIJG8Bit>(bytes, shape.is_signed, out);
  PB_RETURN_IF_ERROR(image.precision <= 12
                         ? Decode<DJDecompressIJG12Bit>(bytes, shape.is_signed, out)
                         : Decode<DJDecompressIJG16Bit>(bytes, shape.is_signed, out));
  return CheckRange(image, shape.is_signed, out);
}

/// RLE: one segment for each byte of a sample, the highest first, each as long as the frame.
Status DecodeDicomRle(std::span<const std::byte> bytes, const DicomFrameShape& shape,
                      std::span<std::byte> out) {
  constexpr std::size_t kWords = 16, kHeaderBytes = 4 * kWords;
  const auto planes = static_cast<std::size_t>(shape.bits_allocated / 8);
  const auto plane = static_cast<std::size_t>(shape.rows * shape.columns);
  if (bytes.size() < kHeaderBytes) return DamagedFrame("rle", "cut inside its header");
  if (RleWordAt(bytes, 0) != planes) {
    return DamagedFrame("rle",
                        StrCat(RleWordAt(bytes, 0), " segments where ", planes, " are expected"));
  }
  std::vector<std::uint8_t> samples(plane);
  for (std::size_t i = 0; i < planes; ++i) {
    const std::size_t begin = RleWordAt(bytes, 1 + i);
    const std::size_t end = i + 1 < planes ? RleWordAt(bytes, 2 + i) : bytes.size();
    if (begin < kHeaderBytes || begin > end || end > bytes.size() || (i == 0 && begin != 64)) {
      return DamagedFrame("rle", "segments that do not follow one another");
    }
    PB_RETURN_IF_ERROR(
        Annotate(DecodeFlat(TiffCompression::kPackBits, bytes.subspan(begin, end - begin), samples),
                 StrCat("rle: segment ", i)));
    // The first segment has a sample's highest byte, which is the last in memory.
    for (std::size_t k = 0; k < plane; ++k)
      out[k * planes + planes - 1 - i] = std::byte{samples[k]};
  }
  for (std::size_t i = 1 + planes; i < kWords; ++i) {
    if (RleWordAt(bytes, i) != 0) {
      return DamagedFrame("rle", "a segment that its header does not count");
    }
  }
  return absl::OkStatus();
}

constexpr std::uint32_t kItemHeaderBytes = 8;

Status DamagedPixels(std::string_view cause) { return DataLoss("read dicom pixels: ", cause); }

/// The bytes of an item of the sequence: 0 is the offset table. They live as long as the sequence.
StatusOr<std::span<const std::byte>> PixelItemAt(DcmPixelSequence& sequence, std::size_t number) {
  DcmPixelItem* item = nullptr;
  Uint8* bytes = nullptr;
  if (sequence.getItem(item, static_cast<unsigned long>(number)).bad()) {
    return DamagedPixels("a fragment is missing");
  }
  const std::size_t size = item->getLength();
  if (size == 0) return std::span<const std::byte>();
  if (item->getUint8Array(bytes).bad() || bytes == nullptr) {
    return DamagedPixels("the bytes of a fragment are not there");
  }
  return std::as_bytes(std::span(bytes, size));
}

StatusOr<std::vector<std::uint32_t>> OffsetTable(DcmPixelSequence& sequence, std::size_t frames) {
  PB_ASSIGN_OR_RETURN(const auto bytes, PixelItemAt(sequence, 0));
  std::vector<std::uint32_t> offsets(bytes.size() / 4);
  if (!offsets.empty()) std::memcpy(offsets.data(), bytes.data(), offsets.size() * 4);
  if (bytes.empty() || bytes.size() == frames * 4) return offsets;
  return DamagedPixels(
      StrCat("an offset table of ", bytes.size(), " bytes for ", frames, " frames"));
}

/// Without an offset table: a frame begins where a fragment begins like a JPEG image.
StatusOr<std::vector<std::size_t>> JpegStarts(DcmPixelSequence& sequence, std::size_t fragments) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < fragments; ++i) {
    PB_ASSIGN_OR_RETURN(const auto bytes, PixelItemAt(sequence, i + 1));
    const bool is_start = bytes.size() >= 3 && bytes[0] == std::byte{0xff} &&
                          bytes[1] == std::byte{0xd8} && bytes[2] == std::byte{0xff};
    if (is_start) starts.push_back(i);
  }
  return starts;
}

constexpr std::string_view kLosslessJpeg2000 = "1.2.840.10008.1.2.4.90";
constexpr std::string_view kPlainSyntaxes[] = {"1.2.840.10008.1.2", "1.2.840.10008.1.2.1",
                                               "1.2.840.10008.1.2.2", "1.2.840.10008.1.2.1.99"};
constexpr std::string_view kRle = "1.2.840.10008.1.2.5";
constexpr std::string_view kJpegSyntaxes[] = {"1.2.840.10008.1.2.4.50", "1.2.840.10008.1.2.4.51",
                                              "1.2.840.10008.1.2.4.53", "1.2.840.10008.1.2.4.55",
                                              "1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70"};
constexpr std::string_view kJpegLsSyntaxes[] = {"1.2.840.10008.1.2.4.80", "1.2.840.10008.1.2.4.81"};
constexpr std::string_view kJpeg2000Syntaxes[] = {kLosslessJpeg2000, "1.2.840.10008.1.2.4.91"};

bool IsOneOf(std::string_view syntax, std::span<const std::string_view> syntaxes) {
  return std::find(syntaxes.begin(), syntaxes.end(), syntax) != syntaxes.end();
}

/// Checks that uncompressed pixels have as many bytes as the frames need; up to one row more may be
/// padding.
Status CheckPlainLength(const DicomFile& file, std::uint64_t length) {
  const auto row = static_cast<std::uint64_t>(file.columns * file.bits_allocated / 8);
  const std::uint64_t wanted = row * static_cast<std::uint64_t>(file.rows) * file.frames.size();
  if (length >= wanted && length - wanted < std::max<std::uint64_t>(row, 2)) {
    return absl::OkStatus();
  }
  return DamagedPixels(StrCat(length, " bytes of pixels where ", wanted, " are expected"));
}

DicomFrameShape ShapeOf(const DicomFile& f) {
  return {f.transfer_syntax, f.rows, f.columns, f.bits_allocated, f.is_signed};
}

/// A codestream ends with its end marker, and padding.
Status CheckJpeg2000End(std::span<const std::byte> stream) {
  constexpr std::array kEnd = {std::byte{0xff}, std::byte{0xd9}};
  const auto end = std::find_end(stream.begin(), stream.end(), kEnd.begin(), kEnd.end());
  if (end != stream.end() && IsPadding({end + 2, stream.end()})) return absl::OkStatus();
  return DataLoss("jpeg 2000: it does not end with an end marker");
}

/// "MONOCHROME1", "3 samples a pixel, RGB".
std::string SamplesOf(const DicomFile& f) {
  constexpr std::string_view kNamed[] = {"MONOCHROME1",  "PALETTE COLOR", "RGB",    "YBR_FULL",
                                         "YBR_FULL_422", "YBR_RCT",       "YBR_ICT"};
  std::string text = f.samples == 1 ? "" : StrCat(f.samples, " samples a pixel, ");
  if (f.photometric.empty()) return text + "no photometric interpretation";
  return text + (IsOneOf(f.photometric, kNamed) ? f.photometric : std::string("not MONOCHROME2"));
}

}  // namespace

StatusOr<std::vector<std::size_t>> FrameStarts(std::span<const std::uint32_t> lengths,
                                               std::span<const std::uint32_t> offsets) {
  std::vector<std::size_t> starts;
  std::uint32_t place = 0;  // offsets of 32 bits wrap round
  for (std::size_t i = 0; i < lengths.size() && starts.size() < offsets.size(); ++i) {
    if (offsets[starts.size()] == place) starts.push_back(i);
    place += lengths[i] + kItemHeaderBytes;
  }
  const bool is_whole = starts.size() == offsets.size() && !starts.empty() && starts[0] == 0;
  if (is_whole) return starts;
  return DamagedPixels("the offset table names places where no fragment begins");
}

StatusOr<DicomFrames> DicomFrames::Place(DcmPixelSequence& sequence, std::size_t frames) {
  if (sequence.card() < 2) return DamagedPixels("no compressed frames");
  const std::size_t fragments = sequence.card() - 1;
  PB_ASSIGN_OR_RETURN(const auto offsets, OffsetTable(sequence, frames));
  std::vector<std::size_t> starts(frames);
  std::iota(starts.begin(), starts.end(), std::size_t{0});
  if (!offsets.empty()) {
    std::vector<std::uint32_t> lengths;
    for (std::size_t i = 0; i < fragments; ++i) {
      DcmPixelItem* item = nullptr;
      if (sequence.getItem(item, static_cast<unsigned long>(i + 1)).bad()) {
        return DamagedPixels("a fragment is missing");
      }
      lengths.push_back(item->getLength());
    }
    PB_ASSIGN_OR_RETURN(starts, FrameStarts(lengths, offsets));
  } else if (frames != 1 && fragments != frames) {
    PB_ASSIGN_OR_RETURN(starts, JpegStarts(sequence, fragments));
  }
  if (starts.size() != frames || starts[0] != 0 || fragments < frames) {
    return DamagedPixels(StrCat(fragments, " fragments of ", frames, " frames"));
  }
  starts.push_back(fragments);
  return DicomFrames(sequence, std::move(starts));
}

StatusOr<std::vector<std::byte>> DicomFrames::Read(std::size_t frame) const {
  std::vector<std::byte> all;
  for (std::size_t i = starts_[frame]; i < starts_[frame + 1]; ++i) {
    PB_ASSIGN_OR_RETURN(const auto bytes, PixelItemAt(*sequence_, i + 1));
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

Status CheckDicomPixelFormat(const DicomFile& f) {
  if (f.samples != 1 || f.photometric != "MONOCHROME2") {
    return Unimplemented(
        "read dicom pixels: ", SamplesOf(f),
        "; only grey images that are brighter for larger values (MONOCHROME2) are read");
  }
  if (f.bits_allocated != 8 && f.bits_allocated != 16) {
    return Unimplemented("read dicom pixels: ", f.bits_allocated,
                         " bits allocated, neither 8 nor 16");
  }
  if (f.bits_stored < 1 || f.bits_stored > f.bits_allocated || f.high_bit >= f.bits_allocated ||
      f.high_bit < f.bits_stored - 1) {
    return InvalidArgument("read dicom pixels: ", f.bits_stored, " bits stored with high bit ",
                           f.high_bit, " of ", f.bits_allocated, " allocated");
  }
  const std::string_view syntax = f.transfer_syntax;
  if (IsOneOf(syntax, kPlainSyntaxes) || syntax == kRle || IsOneOf(syntax, kJpegSyntaxes) ||
      IsOneOf(syntax, kJpegLsSyntaxes) || IsOneOf(syntax, kJpeg2000Syntaxes)) {
    return absl::OkStatus();
  }
  return Unimplemented("read dicom pixels: unsupported transfer syntax");
}

struct DicomPixels::Opened {
  explicit Opened(DicomName opened) : name(std::move(opened)) {}

  const DicomName name;  ///< DCMTK opens it again for large values
  DcmFileFormat format;
  DcmPixelData* pixels = nullptr;
  DcmFileCache cache;
  std::optional<DicomFrames> frames;  ///< frames of compressed pixels

  Status PlaceFrames(std::size_t count);
};

Status DicomPixels::Opened::PlaceFrames(std::size_t count) {
  DcmPixelSequence* sequence = nullptr;
  const E_TransferSyntax syntax = format.getDataset()->getOriginalXfer();
  if (pixels->getEncapsulatedRepresentation(syntax, nullptr, sequence).bad() ||
      sequence == nullptr) {
    return DamagedPixels("no compressed frames");
  }
  PB_ASSIGN_OR_RETURN(frames, DicomFrames::Place(*sequence, count));
  return absl::OkStatus();
}

DicomPixels::DicomPixels(const DicomFile& file, std::unique_ptr<Opened> opened)
    : file_(file), opened_(std::move(opened)) {}
DicomPixels::~DicomPixels() = default;

StatusOr<std::unique_ptr<DicomPixels>> DicomPixels::Open(const Folders& allowed,
                                                         const DicomFile& file) {
  PB_RETURN_IF_ERROR(CheckDicomPixelFormat(file));
  PB_ASSIGN_OR_RETURN(DicomName name, DicomName::OpenToRead(allowed, file.path));
  auto opened = std::make_unique<Opened>(std::move(name));
  const Status loaded =
      LoadDicom(allowed, opened->name, DicomExtent::kAll, kMaxDicomValueBytes, opened->format);
  if (!loaded.ok()) return DamagedPixels(MessageOf(loaded));
  DcmElement* element = nullptr;
  if (opened->format.getDataset()->findAndGetElement(DCM_PixelData, element).bad() ||
      (opened->pixels = dynamic_cast<DcmPixelData*>(element)) == nullptr) {
    return DamagedPixels("there are no pixels");
  }
  if (DcmXfer(opened->format.getDataset()->getOriginalXfer()).isEncapsulated()) {
    PB_RETURN_IF_ERROR(opened->PlaceFrames(file.frames.size()));
  } else {
    PB_RETURN_IF_ERROR(CheckPlainLength(file, element->getLengthField()));
  }
  return std::unique_ptr<DicomPixels>(new DicomPixels(file, std::move(opened)));
}

std::int32_t DicomPixels::StoredValue(std::uint32_t bits, int shift) const {
  const std::uint32_t mask = (1u << file_.bits_stored) - 1;
  const std::uint32_t value = (bits >> shift) & mask;
  const std::uint32_t sign = 1u << (file_.bits_stored - 1);
  if (file_.is_signed && (value & sign) != 0) return static_cast<std::int32_t>(value | ~mask);
  return static_cast<std::int32_t>(value);
}

Status DicomPixels::Read(std::size_t frame, std::span<std::int32_t> out) {
  if (frame >= file_.frames.size() ||
      out.size() != static_cast<std::size_t>(file_.rows * file_.columns)) {
    return Internal("read dicom pixels: no such frame");
  }
  if (!opened_->frames) return ReadByDcmtk(frame, 0, out);
  PB_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, opened_->frames->Read(frame));
  const std::string& syntax = file_.transfer_syntax;
  if (IsOneOf(syntax, kJpegLsSyntaxes)) {
    const JpegLsShape shape{file_.rows, file_.columns, 1, file_.bits_allocated / 8,
                            syntax == kLosslessJpegLs};
    PB_RETURN_IF_ERROR(Annotate(CheckJpegLs(bytes, shape), StrCat("frame ", frame)));
    return ReadByDcmtk(frame, opened_->frames->FirstFragment(frame) + 1, out);
  }
  const Status read =
      IsOneOf(syntax, kJpeg2000Syntaxes) ? ReadJpeg2000(bytes, out) : Decode(bytes, out);
  return Annotate(read, StrCat("frame ", frame));
}

Status DicomPixels::Decode(std::span<const std::byte> bytes, std::span<std::int32_t> out) {
  const auto sample_bytes = static_cast<std::size_t>(file_.bits_allocated / 8);
  std::vector<std::byte> samples(out.size() * sample_bytes);
  const std::string& syntax = file_.transfer_syntax;
  if (syntax == kRle) {
    PB_RETURN_IF_ERROR(DecodeDicomRle(bytes, ShapeOf(file_), samples));
  } else if (IsOneOf(syntax, kJpegSyntaxes)) {
    PB_RETURN_IF_ERROR(DecodeDicomJpeg(bytes, ShapeOf(file_), samples));
  } else {
    return Unimplemented("read dicom pixels: unsupported transfer syntax");
  }
  PutStored(samples, 0, out);
  return absl::OkStatus();
}

void DicomPixels::PutStored(std::span<const std::byte> samples, int shift,
                            std::span<std::int32_t> out) const {
  const auto sample_bytes = static_cast<std::size_t>(file_.bits_allocated / 8);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, samples.data() + i * sample_bytes, sample_bytes);
    out[i] = StoredValue(bits, shift);
  }
}

Status DicomPixels::ReadByDcmtk(std::size_t frame, std::size_t fragment,
                                std::span<std::int32_t> out) {
  const auto sample_bytes = static_cast<std::size_t>(file_.bits_allocated / 8);
  Uint32 size = 0;
  DcmDataset* dataset = opened_->format.getDataset();
  if (opened_->pixels->getUncompressedFrameSize(dataset, size).bad()) {
    return DamagedPixels("the size of a frame is not known");
  }
  if (size < out.size() * sample_bytes || size > out.size() * sample_bytes + 1) {
    return DamagedPixels(
        StrCat("a frame of ", size, " bytes where ", out.size() * sample_bytes, " are expected"));
  }
  std::vector<std::byte> bytes(size + size % 2);
  OFString colours;
  auto next = static_cast<Uint32>(fragment);
  const OFCondition read = opened_->pixels->getUncompressedFrame(
      dataset, static_cast<Uint32>(frame), next, bytes.data(), static_cast<Uint32>(bytes.size()),
      colours, &opened_->cache);
  if (read.bad()) return DamagedPixels(StrCat("frame ", frame, ": ", read.text()));
  const DcmXfer syntax(dataset->getOriginalXfer());
  const int shift = syntax.isEncapsulated() ? 0 : file_.high_bit + 1 - file_.bits_stored;
  PutStored(bytes, shift, out);
  return absl::OkStatus();
}

Status DicomPixels::ReadJpeg2000(std::span<const std::byte> bytes, std::span<std::int32_t> out) {
  PB_RETURN_IF_ERROR(CheckJpeg2000End(bytes));
  tiles::GreyJpeg2000 image{file_.rows, file_.columns, out, file_.bits_stored};
  PB_RETURN_IF_ERROR(tiles::DecodeGreyJpeg2000(bytes, image));
  if (file_.transfer_syntax == kLosslessJpeg2000 && !image.is_reversible) {
    return DataLoss("jpeg 2000: a lossy image in a lossless transfer syntax");
  }
  sign_differs_ |= image.is_signed != file_.is_signed;
  for (std::int32_t& value : out) value = StoredValue(static_cast<std::uint32_t>(value), 0);
  return absl::OkStatus();
}

}  // namespace patchbay::workers
