#include "workers/sources/volumes/jpeg_markers.h"

#include <algorithm>
#include <numeric>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr int kSoi = 0xd8, kEoi = 0xd9, kSos = 0xda, kDqt = 0xdb, kDri = 0xdd, kDht = 0xc4;
constexpr int kSof55 = 0xf7, kLse = 0xf8;

Status Damaged(std::string_view cause) { return absl::DataLossError(StrCat("jpeg: ", cause)); }

bool IsRestart(int marker) { return marker >= 0xd0 && marker <= 0xd7; }

/// A frame header of T.81 (but for DHT, JPG and DAC, which lie between them) or of JPEG-LS.
bool IsFrame(int marker) {
  return (marker >= 0xc0 && marker <= 0xcf && marker != kDht && marker != 0xc8 && marker != 0xcc) ||
         marker == kSof55;
}

/// Tables, comments and what applications write.
bool IsPassedOver(int marker) {
  return marker == 0xcc || marker == 0xdc || marker == kLse || marker == 0xfe ||
         (marker >= 0xe0 && marker <= 0xef);
}

/// The bytes of one marker segment. What it reads beyond their end is 0, and remembered.
class Segment {
 public:
  explicit Segment(std::span<const std::byte> bytes) : bytes_(bytes) {}

  int Byte() {
    is_short_ |= at_ == bytes_.size();
    return at_ < bytes_.size() ? static_cast<int>(bytes_[at_++]) : 0;
  }
  int Word() {
    const int high = Byte();
    return high << 8 | Byte();
  }
  bool AtEnd() const { return at_ == bytes_.size(); }
  bool IsShort() const { return is_short_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool is_short_ = false;
};

/// Reads forward from marker to marker.
class Walk {
 public:
  explicit Walk(std::span<const std::byte> bytes) : bytes_(bytes) {}

  StatusOr<JpegMarkers> Read() {
    if (Marker() != kSoi) return Damaged("it does not begin like a JPEG image");
    for (int marker = Marker(); marker != kEoi; marker = Marker()) {
      if (marker < 0) return Damaged(at_ >= bytes_.size() ? "cut short" : "bytes between markers");
      PB_RETURN_IF_ERROR(ReadSegment(marker));
    }
    if (out_.scans == 0) return Damaged("an image without codes");
    const auto rest = bytes_.subspan(at_);
    if (!IsPadding(rest)) return Damaged(StrCat(rest.size(), " bytes after the end of the image"));
    return std::move(out_);
  }

 private:
  /// -1 where there is none. Any number of bytes 0xff may stand before it.
  int Marker() {
    if (at_ >= bytes_.size() || bytes_[at_] != std::byte{0xff}) return -1;
    while (at_ < bytes_.size() && bytes_[at_] == std::byte{0xff}) ++at_;
    return at_ < bytes_.size() ? static_cast<int>(bytes_[at_++]) : -1;
  }

  Status ReadSegment(int marker) {
    Segment head(bytes_.subspan(at_));
    const auto size = static_cast<std::size_t>(head.Word());
    if (head.IsShort() || size < 2 || size > bytes_.size() - at_) {
      return Damaged(StrCat("marker ", marker, ": longer than what is left"));
    }
    Segment segment(bytes_.subspan(at_ + 2, size - 2));
    at_ += size;
    if (marker == kSos) return ReadScan(segment);
    if (IsFrame(marker)) return ReadFrame(marker, segment);
    if (marker == kDht) return ReadHuffmanTables(segment);
    if (marker == kDqt) return ReadQuantizationTables(segment);
    if (marker == kDri) return ReadRestartInterval(segment);
    if (IsPassedOver(marker)) return absl::OkStatus();
    return Damaged(StrCat("marker ", marker, " where none is known"));
  }

  Status ReadFrame(int marker, Segment& segment) {
    if (out_.process >= 0) return Damaged("two frame headers");
    out_.process = marker == kSof55 ? kJpegLs : marker - 0xc0;
    out_.precision = segment.Byte();
    if (out_.precision > 16) return Damaged(StrCat("samples of ", out_.precision, " bits"));
    out_.rows = segment.Word();
    out_.columns = segment.Word();
    out_.components = segment.Byte();
    for (int i = 0; i < out_.components; ++i) {
      segment.Word();
      const int table = segment.Byte();
      if (i == 0) out_.quantization_table = table;
    }
    return Whole(segment, "the frame header");
  }

  Status ReadHuffmanTables(Segment& segment) {
    while (!segment.AtEnd()) {
      const int place = segment.Byte();
      JpegHuffmanTable table;
      for (std::uint8_t& count : table.counts) count = static_cast<std::uint8_t>(segment.Byte());
      const int codes = std::accumulate(table.counts.begin(), table.counts.end(), 0);
      for (int i = 0; i < std::min(codes, 256); ++i) {
        table.values.push_back(static_cast<std::uint8_t>(segment.Byte()));
      }
      if (segment.IsShort() || codes > 256 || (place & 0xef) > 3) {
        return Damaged("a Huffman table of an invalid class, index or length");
      }
      ((place & 0x10) != 0 ? out_.ac : out_.dc)[static_cast<std::size_t>(place & 3)] =
          std::move(table);
    }
    return absl::OkStatus();
  }

  Status ReadQuantizationTables(Segment& segment) {
    while (!segment.AtEnd()) {
      const int place = segment.Byte();
      const bool has_words = place >> 4 == 1;
      for (int i = 0; i < 64; ++i) {
        const int step = has_words ? segment.Word() : segment.Byte();
        if (step == 0) return Damaged("a quantization table with a step of 0");
        if (i == 0) out_.dc_step[static_cast<std::size_t>(place & 3)] = step;
      }
      if ((place & 0xef) > 3) return Damaged("a quantization table of an invalid index");
    }
    return Whole(segment, "a quantization table");
  }

  Status ReadRestartInterval(Segment& segment) {
    out_.restart_interval = segment.Word();
    return Whole(segment, "the restart interval");
  }

  Status ReadScan(Segment& segment) {
    if (out_.process < 0) return Damaged("codes before the frame header");
    out_.scan_components = segment.Byte();
    for (int i = 0; i < out_.scan_components; ++i) {
      segment.Byte();
      const int tables = segment.Byte();
      if (i == 0) out_.dc_table = tables >> 4;
      if (i == 0) out_.ac_table = tables & 15;
    }
    out_.first = segment.Byte();
    out_.last = segment.Byte();
    segment.Byte();
    ++out_.scans;
    const std::size_t begin = at_;
    while (at_ < bytes_.size() && !IsMarkerAt(at_)) ++at_;
    out_.codes = bytes_.subspan(begin, at_ - begin);
    return Whole(segment, "the scan header");
  }

  /// Whether codes end here: 0xff is followed by 0 where it belongs to them, in JPEG-LS by any byte
  /// below 0x80.
  bool IsMarkerAt(std::size_t at) const {
    if (bytes_[at] != std::byte{0xff} || at + 1 >= bytes_.size()) return false;
    const int next = static_cast<int>(bytes_[at + 1]);
    return (out_.process == kJpegLs ? next >= 0x80 : next != 0) && !IsRestart(next);
  }

  static Status Whole(const Segment& segment, std::string_view what) {
    if (!segment.IsShort() && segment.AtEnd()) return absl::OkStatus();
    return Damaged(StrCat(what, " has another length than it says"));
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  JpegMarkers out_;
};

}  // namespace

bool IsPadding(std::span<const std::byte> bytes) {
  return bytes.size() <= 1 ||
         std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

StatusOr<JpegMarkers> ReadJpegMarkers(std::span<const std::byte> bytes) {
  return Walk(bytes).Read();
}

}  // namespace patchbay::workers
