#include "workers/sources/volumes/dicom_codecs.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmjpeg/djcparam.h>
#include <dcmtk/dcmjpeg/djdijg12.h>
#include <dcmtk/dcmjpeg/djdijg16.h>
#include <dcmtk/dcmjpeg/djdijg8.h>

#include "runtime/core/strings.h"
#include "workers/sources/flat_codecs.h"
#include "workers/sources/volumes/jpeg_markers.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kLossless14 = "1.2.840.10008.1.2.4.57";
constexpr std::string_view kLossless14First = "1.2.840.10008.1.2.4.70";
constexpr std::string_view kLosslessJpegLs = "1.2.840.10008.1.2.4.80";
/// A progressive image may repeat passes over the whole frame; more than this is an attack.
constexpr int kMaxScans = 128;

Status Damaged(std::string_view codec, std::string_view cause) {
  return absl::DataLossError(StrCat(codec, ": ", cause));
}

Status CheckSize(const JpegMarkers& image, const DicomFrameShape& shape, std::string_view codec) {
  if (image.rows != shape.rows || image.columns != shape.columns || image.components != 1) {
    return Damaged(codec, StrCat(image.columns, " x ", image.rows, " pixels of ", image.components,
                                 " components where the file promises ", shape.columns, " x ",
                                 shape.rows, " of 1"));
  }
  if ((image.precision + 7) / 8 != shape.bits_allocated / 8) {
    return Damaged(codec, StrCat("samples of ", image.precision, " bits where the file promises ",
                                 shape.bits_allocated));
  }
  return absl::OkStatus();
}

/// The processes that a transfer syntax allows.
Status CheckSyntax(const JpegMarkers& image, const DicomFrameShape& shape) {
  const bool is_first = shape.transfer_syntax == kLossless14First;
  const bool is_lossless = is_first || shape.transfer_syntax == kLossless14;
  const bool is_allowed = is_lossless == (image.process == kJpegLossless) &&
                          image.process != kJpegLs && (!is_first || image.first == 1);
  if (!is_allowed) return Damaged("jpeg", "a process that is not of its transfer syntax");
  if (image.scans > kMaxScans) return Damaged("jpeg", StrCat("more than ", kMaxScans, " scans"));
  return absl::OkStatus();
}

/// One of DCMTK's decoders, which log what libjpeg warns about and go on.
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
  if (decoder.init().bad()) return absl::InternalError("jpeg: the decoder cannot be made");
  // DCMTK takes its input as not const, and does not write to it.
  auto* from = const_cast<Uint8*>(reinterpret_cast<const Uint8*>(bytes.data()));
  const OFCondition decoded =
      decoder.decode(from, static_cast<Uint32>(bytes.size()), reinterpret_cast<Uint8*>(out.data()),
                     static_cast<Uint32>(out.size()), is_signed ? OFTrue : OFFalse);
  if (decoded.bad()) return Damaged("jpeg", decoded.text());
  return decoder.has_warned() ? Damaged("jpeg", "corrupt codes") : absl::OkStatus();
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
      return Damaged("jpeg", StrCat("values of more than ", image.precision, " bits"));
    }
  }
  return absl::OkStatus();
}

std::uint32_t WordAt(std::span<const std::byte> bytes, std::size_t number) {
  std::array<unsigned char, 4> b{};
  std::memcpy(b.data(), bytes.data() + 4 * number, 4);
  return static_cast<std::uint32_t>(b[0]) | static_cast<std::uint32_t>(b[1]) << 8 |
         static_cast<std::uint32_t>(b[2]) << 16 | static_cast<std::uint32_t>(b[3]) << 24;
}

}  // namespace

Status DecodeDicomJpeg(std::span<const std::byte> bytes, const DicomFrameShape& shape,
                       std::span<std::byte> out) {
  PB_ASSIGN_OR_RETURN(const JpegMarkers image, ReadJpegMarkers(bytes));
  PB_RETURN_IF_ERROR(CheckSize(image, shape, "jpeg"));
  PB_RETURN_IF_ERROR(CheckSyntax(image, shape));
  PB_RETURN_IF_ERROR(CheckJpegCodes(image));
  if (image.precision <= 8) return Decode<DJDecompressIJG8Bit>(bytes, shape.is_signed, out);
  PB_RETURN_IF_ERROR(image.precision <= 12
                         ? Decode<DJDecompressIJG12Bit>(bytes, shape.is_signed, out)
                         : Decode<DJDecompressIJG16Bit>(bytes, shape.is_signed, out));
  return CheckRange(image, shape.is_signed, out);
}

Status CheckDicomJpegLs(std::span<const std::byte> bytes, const DicomFrameShape& shape) {
  PB_ASSIGN_OR_RETURN(const JpegMarkers image, ReadJpegMarkers(bytes));
  PB_RETURN_IF_ERROR(CheckSize(image, shape, "jpeg-ls"));
  const bool is_lossless = shape.transfer_syntax == kLosslessJpegLs;
  if (image.process == kJpegLs && !(is_lossless && image.first != 0)) return absl::OkStatus();
  return Damaged("jpeg-ls", "a process that is not of its transfer syntax");
}

Status DecodeDicomRle(std::span<const std::byte> bytes, const DicomFrameShape& shape,
                      std::span<std::byte> out) {
  constexpr std::size_t kWords = 16, kHeaderBytes = 4 * kWords;
  const auto planes = static_cast<std::size_t>(shape.bits_allocated / 8);
  const auto plane = static_cast<std::size_t>(shape.rows * shape.columns);
  if (bytes.size() < kHeaderBytes) return Damaged("rle", "cut inside its header");
  if (WordAt(bytes, 0) != planes) {
    return Damaged("rle", StrCat(WordAt(bytes, 0), " segments where ", planes, " are promised"));
  }
  std::vector<std::uint8_t> samples(plane);
  for (std::size_t i = 0; i < planes; ++i) {
    const std::size_t begin = WordAt(bytes, 1 + i);
    const std::size_t end = i + 1 < planes ? WordAt(bytes, 2 + i) : bytes.size();
    if (begin < kHeaderBytes || begin > end || end > bytes.size() || (i == 0 && begin != 64)) {
      return Damaged("rle", "segments that do not follow one another");
    }
    PB_RETURN_IF_ERROR(
        Annotate(DecodeFlat(TiffCompression::kPackBits, bytes.subspan(begin, end - begin), samples),
                 StrCat("rle: segment ", i)));
    // The first segment has a sample's highest byte, which is the last in memory.
    for (std::size_t k = 0; k < plane; ++k)
      out[k * planes + planes - 1 - i] = std::byte{samples[k]};
  }
  for (std::size_t i = 1 + planes; i < kWords; ++i) {
    if (WordAt(bytes, i) != 0) return Damaged("rle", "a segment that its header does not count");
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers
