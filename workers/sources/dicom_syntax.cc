#include "workers/sources/dicom_syntax.h"

#include <optional>
#include <string_view>

namespace patchbay::workers {
namespace {

constexpr std::string_view kLosslessUid = "1.2.840.10008.1.2.4.80";

struct Syntax {
  std::string_view uid, name;
  std::optional<TiffCompression> compression;  ///< nothing: not read
};
constexpr Syntax kSyntaxes[] = {
    {"1.2.840.10008.1.2", "implicit little-endian", TiffCompression::kNone},
    {"1.2.840.10008.1.2.1", "explicit little-endian", TiffCompression::kNone},
    {"1.2.840.10008.1.2.4.50", "JPEG baseline", TiffCompression::kJpeg},
    {"1.2.840.10008.1.2.4.90", "JPEG 2000", TiffCompression::kAperioJpeg2000Rgb},
    {"1.2.840.10008.1.2.4.91", "JPEG 2000", TiffCompression::kAperioJpeg2000Rgb},
    {"1.2.840.10008.1.2.4.51", "JPEG extended", std::nullopt},
    {"1.2.840.10008.1.2.4.57", "lossless JPEG", std::nullopt},
    {"1.2.840.10008.1.2.4.70", "lossless JPEG", std::nullopt},
    {kLosslessUid, "JPEG-LS", TiffCompression::kDicomJpegLs},
    {"1.2.840.10008.1.2.4.81", "JPEG-LS", TiffCompression::kDicomJpegLs},
    {"1.2.840.10008.1.2.4.201", "high-throughput JPEG 2000", std::nullopt},
    {"1.2.840.10008.1.2.4.202", "high-throughput JPEG 2000", std::nullopt},
    {"1.2.840.10008.1.2.4.203", "high-throughput JPEG 2000", std::nullopt},
    {"1.2.840.10008.1.2.5", "RLE", std::nullopt},
};

}  // namespace

StatusOr<TiffCompression> CompressionOf(const std::string& uid) {
  for (const Syntax& syntax : kSyntaxes) {
    if (syntax.uid != uid) continue;
    if (syntax.compression) return *syntax.compression;
    return Unimplemented(
        "transfer syntax ", uid, " (0002,0010): ", syntax.name,
        " is not read; JPEG baseline, JPEG 2000, JPEG-LS and uncompressed tiles are");
  }
  return Unimplemented("transfer syntax (0002,0010): one that is not known");
}

bool IsLosslessJpegLs(const std::string& uid) { return uid == kLosslessUid; }

}  // namespace patchbay::workers
