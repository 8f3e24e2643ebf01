#include "workers/sources/jpeg_markers.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr int kSoi = 0xd8, kEoi = 0xd9, kSos = 0xda, kDqt = 0xdb, kDri = 0xdd, kDht = 0xc4;
constexpr int kSof55 = 0xf7, kLse = 0xf8;

Status DamagedJpeg(std::string_view cause) { return DataLoss("jpeg: ", cause); }

bool IsRestart(int marker) { return marker >= 0xd0 && marker <= 0xd7; }

/// A frame header of T.81 (but for DHT, JPG and DAC, which lie between them) or of JPEG-LS.
bool IsFrame(int marker) {
  return (marker >= 0xc0 && marker <= 0xcf && marker != kDht && marker != 0xc8 && marker != 0xcc) ||
         marker == kSof55;
}

/// Tables, comments and application markers.
bool IsSkipped(int marker) {
  return marker == 0xcc || marker == 0xdc || marker == kLse || marker == 0xfe ||
         (marker >= 0xe0 && marker <= 0xef);
}

/// The bytes of one marker segment. Reads beyond the end return 0 and are recorded.
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
class MarkerWalk {
 public:
  explicit MarkerWalk(std::span<const std::byte> bytes) : bytes_(bytes) {}

  StatusOr<JpegMarkers> Read() {
    if (Marker() != kSoi) return DamagedJpeg("it does not begin like a JPEG image");
    for (int marker = Marker(); marker != kEoi; marker = Marker()) {
      if (marker < 0) {
        return DamagedJpeg(at_ >= bytes_.size() ? "cut short" : "bytes between markers");
      }
      PB_RETURN_IF_ERROR(ReadSegment(marker));
    }
    if (out_.scans == 0) return DamagedJpeg("an image without codes");
    const auto rest = bytes_.subspan(at_);
    if (!IsPadding(rest)) {
      return DamagedJpeg(StrCat(rest.size(), " bytes after the end of the image"));
    }
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
      return DamagedJpeg(StrCat("marker ", marker, ": longer than the rest of the file"));
    }
    Segment segment(bytes_.subspan(at_ + 2, size - 2));
    at_ += size;
    if (marker == kSos) return ReadScan(segment);
    if (IsFrame(marker)) return ReadFrame(marker, segment);
    if (marker == kDht) return ReadHuffmanTables(segment);
    if (marker == kDqt) return ReadQuantizationTables(segment);
    if (marker == kDri) return ReadRestartInterval(segment);
    if (IsSkipped(marker)) return absl::OkStatus();
    return DamagedJpeg(StrCat("marker ", marker, ": unknown"));
  }

  Status ReadFrame(int marker, Segment& segment) {
    if (out_.process >= 0) return DamagedJpeg("two frame headers");
    out_.process = marker == kSof55 ? kJpegLs : marker - 0xc0;
    out_.precision = segment.Byte();
    if (out_.precision > 16) return DamagedJpeg(StrCat("samples of ", out_.precision, " bits"));
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
        return DamagedJpeg("a Huffman table of an invalid class, index or length");
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
        if (step == 0) return DamagedJpeg("a quantization table with a step of 0");
        if (i == 0) out_.dc_step[static_cast<std::size_t>(place & 3)] = step;
      }
      if ((place & 0xef) > 3) return DamagedJpeg("a quantization table of an invalid index");
    }
    return Whole(segment, "a quantization table");
  }

  Status ReadRestartInterval(Segment& segment) {
    out_.restart_interval = segment.Word();
    return Whole(segment, "the restart interval");
  }

  Status ReadScan(Segment& segment) {
    if (out_.process < 0) return DamagedJpeg("codes before the frame header");
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
    return DamagedJpeg(StrCat(what, " has another length than it states"));
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  JpegMarkers out_;
};

constexpr std::size_t kRoom = 8;  ///< bytes behind the codes that may be looked at

/// Decodes the code that the next 16 bits begin with: its length and its value.
class CodeTable {
 public:
  static StatusOr<CodeTable> Make(const JpegHuffmanTable& table) {
    CodeTable out;
    std::size_t filled = 0, value = 0;
    for (int bits = 1; bits <= 16; ++bits) {
      const std::size_t share = std::size_t{1} << (16 - bits);
      for (int i = 0; i < table.counts[static_cast<std::size_t>(bits - 1)]; ++i) {
        if (filled + share > out.entries_.size()) return DamagedJpeg("a table of too many codes");
        const int entry = bits << 8 | table.values[value++];
        std::fill_n(out.entries_.begin() + static_cast<std::ptrdiff_t>(filled), share,
                    static_cast<std::uint16_t>(entry));
        filled += share;
      }
    }
    return out;
  }

  /// 0 for bits that begin no code.
  int At(std::uint32_t sixteen_bits) const { return entries_[sixteen_bits]; }

 private:
  CodeTable() : entries_(std::size_t{1} << 16) {}

  std::vector<std::uint16_t> entries_;
};

/// The bits between two restart markers.
class Bits {
 public:
  /// `bytes` without stuffed ones, and with kRoom bytes behind them.
  explicit Bits(const std::vector<std::uint8_t>& bytes)
      : bytes_(bytes), end_(8 * (bytes.size() - kRoom)) {}

  /// The value of the next code; -1 where there is none.
  int Code(const CodeTable& table) {
    const int entry = at_ < end_ ? table.At(Peek()) : 0;
    at_ += static_cast<std::size_t>(entry >> 8);
    return entry == 0 ? -1 : entry & 255;
  }

  /// Up to 16 bits, in JPEG's form of a signed number.
  int Number(int bits) {
    if (bits == 0 || at_ >= end_) {
      at_ += static_cast<std::size_t>(bits);
      return 0;
    }
    const int value = static_cast<int>(Peek() >> (16 - bits));
    at_ += static_cast<std::size_t>(bits);
    return value >> (bits - 1) != 0 ? value : value - (1 << bits) + 1;
  }

  /// OK where less than a byte is left, of equal bits.
  Status CheckEnd() const {
    if (at_ > end_) return DamagedJpeg("its codes end before the image does");
    const std::size_t left = end_ - at_;
    if (left >= 8) {
      return DamagedJpeg(StrCat(left / 8, " bytes of codes after the end of the image"));
    }
    if (left == 0) return absl::OkStatus();
    const unsigned rest = Peek() >> (16 - left);
    if (rest == 0 || rest == (1u << left) - 1) return absl::OkStatus();
    return DamagedJpeg("codes after the end of the image");
  }

 private:
  std::uint32_t Peek() const {
    const std::uint8_t* p = bytes_.data() + at_ / 8;
    const std::uint32_t three = static_cast<std::uint32_t>(p[0] << 16 | p[1] << 8 | p[2]);
    return three >> (8 - at_ % 8) & 0xffff;
  }

  const std::vector<std::uint8_t>& bytes_;
  std::size_t at_ = 0, end_;
};

/// Reads the codes of one image.
class CodeReader {
 public:
  CodeReader(const JpegMarkers& image, CodeTable dc, CodeTable ac)
      : image_(image), dc_(std::move(dc)), ac_(std::move(ac)) {
    const bool is_lossless = image.process == kJpegLossless;
    units_ = is_lossless ? image.rows * image.columns
                         : ((image.rows + 7) / 8) * ((image.columns + 7) / 8);
    dc_step_ = image.dc_step[static_cast<std::size_t>(image.quantization_table & 3)];
  }

  Status Check() {
    std::size_t at = 0;
    const std::int64_t interval = image_.restart_interval > 0 ? image_.restart_interval : units_;
    for (std::int64_t done = 0, part = 0; done < units_; done += interval, ++part) {
      if (part > 0) PB_RETURN_IF_ERROR(PassRestart(part - 1, at));
      Bits bits(Unstuffed(at));
      PB_RETURN_IF_ERROR(CheckUnits(bits, std::min(interval, units_ - done)));
    }
    if (at == image_.codes.size()) return absl::OkStatus();
    return DamagedJpeg("codes after the end of the image");
  }

 private:
  int ByteAt(std::size_t at) const { return static_cast<int>(image_.codes[at]); }

  /// The bytes up to the next marker, which `at` is moved to.
  const std::vector<std::uint8_t>& Unstuffed(std::size_t& at) {
    bytes_.clear();
    for (; at < image_.codes.size(); ++at) {
      const int byte = ByteAt(at);
      if (byte == 0xff && at + 1 < image_.codes.size() && ByteAt(at + 1) != 0) break;
      bytes_.push_back(static_cast<std::uint8_t>(byte));
      if (byte == 0xff) ++at;
    }
    at = std::min(at, image_.codes.size());
    bytes_.resize(bytes_.size() + kRoom, 0xff);
    return bytes_;
  }

  Status PassRestart(std::int64_t number, std::size_t& at) const {
    const bool is_there =
        at + 2 <= image_.codes.size() && ByteAt(at + 1) == 0xd0 + static_cast<int>(number % 8);
    if (!is_there) return DamagedJpeg("a restart marker is missing");
    at += 2;
    return absl::OkStatus();
  }

  Status CheckUnits(Bits& bits, std::int64_t units) const {
    const bool is_lossless = image_.process == kJpegLossless;
    const char* what = is_lossless ? "sample" : "block";
    std::int64_t dc = 0;
    for (std::int64_t i = 0; i < units; ++i) {
      const bool is_code = is_lossless ? CheckSample(bits) : CheckBlock(bits, dc);
      if (!is_code) return DamagedJpeg(StrCat("impossible codes at ", what, " ", i, " of ", units));
    }
    return bits.CheckEnd();
  }

  bool CheckSample(Bits& bits) const {
    const int size = bits.Code(dc_);
    if (size < 0 || size > 16) return false;
    if (size < 16) bits.Number(size);  // a difference of 32768 has no further bits
    return true;
  }

  /// `dc` is carried from block to block.
  bool CheckBlock(Bits& bits, std::int64_t& dc) const {
    const int size = bits.Code(dc_);
    if (size < 0 || size > 15) return false;
    dc += bits.Number(size);
    // Eight times a sample's distance from the middle, rounded to a step.
    if (std::abs(dc * dc_step_) > (std::int64_t{4} << image_.precision) + dc_step_) return false;
    for (int k = 1; k < 64; ++k) {
      const int code = bits.Code(ac_);
      if (code < 0) return false;
      if (code == 0) return true;
      const int bits_of_it = code & 15;
      if (bits_of_it == 0 && code != 0xf0) return false;
      k += code >> 4;
      if (k > 63) return false;
      bits.Number(bits_of_it);
    }
    return true;
  }

  const JpegMarkers& image_;
  const CodeTable dc_, ac_;
  std::int64_t units_ = 0, dc_step_ = 0;
  std::vector<std::uint8_t> bytes_;
};

StatusOr<CodeTable> TableAt(const std::array<std::optional<JpegHuffmanTable>, 4>& tables,
                            int place) {
  if (place > 3 || !tables[static_cast<std::size_t>(place)]) {
    return DamagedJpeg("a table of codes is missing");
  }
  return CodeTable::Make(*tables[static_cast<std::size_t>(place)]);
}

}  // namespace

bool IsPadding(std::span<const std::byte> bytes) {
  return bytes.size() <= 1 ||
         std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

StatusOr<JpegMarkers> ReadJpegMarkers(std::span<const std::byte> bytes) {
  return MarkerWalk(bytes).Read();
}

Status CheckJpegCodes(const JpegMarkers& image) {
  const bool is_lossless = image.process == kJpegLossless;
  if (image.scans != 1 || image.components != 1 || image.scan_components != 1) {
    return absl::OkStatus();
  }
  if (!is_lossless && image.process != 0 && image.process != 1) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(CodeTable dc, TableAt(image.dc, image.dc_table));
  PB_ASSIGN_OR_RETURN(CodeTable ac, is_lossless ? TableAt(image.dc, image.dc_table)
                                                : TableAt(image.ac, image.ac_table));
  return CodeReader(image, std::move(dc), std::move(ac)).Check();
}

}  // namespace patchbay::workers
