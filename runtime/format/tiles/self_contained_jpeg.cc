#include "runtime/format/tiles/self_contained_jpeg.h"

#include <cstdint>
#include <string_view>

#include "runtime/core/hash.h"

namespace patchbay::tiles {
namespace {

// Markers of ITU T.81.
constexpr std::uint8_t kMark = 0xFF, kEnd = 0xD9, kScan = 0xDA, kQuantisation = 0xDB,
                       kHuffman = 0xC4, kApp0 = 0xE0, kApp14 = 0xEE;
constexpr std::string_view kFirst("\xFF\xD8", 2), kJfif("JFIF\0", 5), kAdobe("Adobe", 5);

/// A marker with its parameters, whole and without marker and length.
struct Segment {
  std::uint8_t marker = 0;
  std::string_view whole, content;
};

/// The segments of a stream, one after another.
class Segments {
 public:
  static StatusOr<Segments> Of(std::string_view stream) {
    if (!stream.starts_with(kFirst)) return DataLoss("jpeg: no start marker");
    return Segments(stream.substr(kFirst.size()));
  }

  /// Leaves the scan's or end marker itself in `rest`.
  StatusOr<Segment> Next() {
    const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(rest_[i]); };
    while (rest_.size() >= 2 && at(0) == kMark && at(1) == kMark) rest_.remove_prefix(1);
    if (rest_.size() < 2 || at(0) != kMark) return DataLoss("jpeg: no marker before the scan");
    Segment segment{at(1), {}, {}};
    if (segment.marker == kScan || segment.marker == kEnd) return segment;
    const std::size_t size = rest_.size() < 4 ? 0 : std::size_t{at(2)} << 8 | at(3);
    if (size < 2 || rest_.size() < size + 2) return DataLoss("jpeg: a marker that is cut");
    segment.whole = rest_.substr(0, size + 2);
    segment.content = segment.whole.substr(4);
    rest_.remove_prefix(segment.whole.size());
    return segment;
  }
  std::string_view rest() const { return rest_; }

 private:
  explicit Segments(std::string_view rest) : rest_(rest) {}

  std::string_view rest_;
};

bool StatesColours(const Segment& segment) {
  return (segment.marker == kApp0 && segment.content.starts_with(kJfif)) ||
         (segment.marker == kApp14 && segment.content.starts_with(kAdobe));
}

std::string AdobeMarker(bool is_ycbcr) {
  std::string marker("\xFF\xEE\0\x0E", 4);
  marker.append(kAdobe).append("\0\x64\0\0\0\0", 6);
  marker += is_ycbcr ? '\1' : '\0';
  return marker;
}

}  // namespace

StatusOr<SelfContainedJpeg> SelfContainedJpeg::Make(const TileFormat& format, int components) {
  std::string head(kFirst);
  if (components == 3) head += AdobeMarker(format.is_ycbcr);
  if (format.jpeg_tables.empty()) return SelfContainedJpeg(std::move(head));
  PB_ASSIGN_OR_RETURN(Segments segments, Segments::Of(format.jpeg_tables));
  for (;;) {
    PB_ASSIGN_OR_RETURN(const Segment segment, segments.Next());
    if (segment.marker == kEnd) return SelfContainedJpeg(std::move(head));
    if (segment.marker == kScan) return DataLoss("jpeg: the JPEG tables hold an image");
    // A decoder takes no other state from one stream to the next.
    if (segment.marker == kQuantisation || segment.marker == kHuffman) head += segment.whole;
  }
}

Status SelfContainedJpeg::Append(std::span<const std::byte> tile,
                                 std::vector<std::byte>& out) const {
  const auto append = [&out](std::string_view text) {
    const auto bytes = AsBytes(text);
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  PB_ASSIGN_OR_RETURN(Segments segments, Segments::Of(AsText(tile)));
  append(head_);
  for (;;) {
    PB_ASSIGN_OR_RETURN(const Segment segment, segments.Next());
    if (segment.marker == kEnd) return DataLoss("jpeg: no image");
    if (segment.marker == kScan) break;
    if (!StatesColours(segment)) append(segment.whole);
  }
  append(segments.rest());
  return absl::OkStatus();
}

}  // namespace patchbay::tiles
