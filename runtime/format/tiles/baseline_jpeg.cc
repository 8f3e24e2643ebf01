#include "runtime/format/tiles/baseline_jpeg.h"

#include <algorithm>
#include <cstring>

namespace patchbay::tiles {
namespace {

constexpr std::uint8_t kStartOfImage = 0xD8, kEndOfImage = 0xD9, kStartOfScan = 0xDA,
                       kQuantisationSteps = 0xDB, kRestartInterval = 0xDD, kBaselineFrame = 0xC0,
                       kHuffmanCodes = 0xC4, kComment = 0xFE;

/// As libjpeg has it.
constexpr int kSideMax = 65500;

/// Bytes before each row of samples and behind it, which vectors may read and write.
constexpr std::ptrdiff_t kRowMargin = 64;

/// With fewer samples in a row libjpeg repeats them.
constexpr int kDoubledColumnsMin = 3;

int Word(std::span<const std::uint8_t> bytes) { return bytes[0] << 8 | bytes[1]; }

int Groups(int count, int size) { return (count + size - 1) / size; }

}  // namespace

bool BaselineJpeg::ReadSteps(Bytes segment) {
  while (!segment.empty()) {
    // The upper half is 1 for steps of 16 bits.
    const std::size_t table = segment[0];
    if (table >= steps_.size() || segment.size() < 1 + kBlockSize) return false;
    for (std::size_t i = 0; i < kBlockSize; ++i) {
      steps_[table].value[kCodeOrder[i]] = segment[1 + i];
    }
    steps_read_ |= 1u << table;
    segment = segment.subspan(1 + kBlockSize);
  }
  return true;
}

bool BaselineJpeg::ReadCodes(Bytes segment) {
  while (!segment.empty()) {
    const bool is_dc = segment[0] < 0x10;
    const std::size_t table = segment[0] & 15;
    if (segment[0] >= 0x20 || table >= 4) return false;
    segment = segment.subspan(1);
    const std::size_t place = is_dc ? table : 4 + table;
    if (!codes_[place].Read(segment, is_dc)) return false;
    codes_read_ |= 1u << place;
  }
  return true;
}

bool BaselineJpeg::ReadFrame(Bytes segment) {
  if (count_ != 0 || segment.size() < 6 || segment[0] != 8) return false;
  height_ = Word(segment.subspan(1));
  width_ = Word(segment.subspan(3));
  const std::size_t count = segment[5];
  if ((count != 1 && count != 3) || segment.size() != 6 + 3 * count) return false;
  for (std::size_t c = 0; c < count; ++c) {
    const Bytes entry = segment.subspan(6 + 3 * c);
    Component& component = components_[c];
    component.id = entry[0];
    component.h = entry[1] >> 4;
    component.v = entry[1] & 15;
    component.steps = entry[2];
    if (component.steps >= steps_.size()) return false;
    for (std::size_t other = 0; other < c; ++other) {
      if (components_[other].id == component.id) return false;
    }
    if (c > 0 && (component.h != 1 || component.v != 1)) return false;
  }
  Component& first = components_[0];
  // A scan of one component goes block by block.
  if (count == 1 && first.h >= 1 && first.h <= 4 && first.v >= 1 && first.v <= 4) {
    first.h = first.v = 1;
  }
  if (first.h < 1 || first.h > 2 || first.v < 1 || first.v > first.h) return false;
  count_ = static_cast<int>(count);
  return true;
}

bool BaselineJpeg::ReadScanHeader(Bytes segment) {
  const auto count = static_cast<std::size_t>(count_);
  if (count == 0 || segment.size() != 4 + 2 * count || segment[0] != count) return false;
  for (std::size_t c = 0; c < count; ++c) {
    const Bytes entry = segment.subspan(1 + 2 * c);
    Component& component = components_[c];
    component.dc_codes = entry[1] >> 4;
    component.ac_codes = static_cast<std::uint8_t>(4 + (entry[1] & 15));
    if (entry[0] != component.id || component.dc_codes >= 4 || component.ac_codes >= 8 ||
        (codes_read_ >> component.dc_codes & 1) == 0 ||
        (codes_read_ >> component.ac_codes & 1) == 0 || (steps_read_ >> component.steps & 1) == 0) {
      return false;
    }
  }
  const Bytes band = segment.subspan(1 + 2 * count);
  return band[0] == 0 && band[1] == kBlockSize - 1 && band[2] == 0;
}

bool BaselineJpeg::ReadSegment(std::uint8_t marker, Bytes segment) {
  switch (marker) {
    case kQuantisationSteps:
      return ReadSteps(segment);
    case kHuffmanCodes:
      return ReadCodes(segment);
    case kBaselineFrame:
      return ReadFrame(segment);
    case kStartOfScan:
      return ReadScanHeader(segment);
    case kRestartInterval:
      return segment.size() == 2 && Word(segment) == 0;
    default:
      return marker == kComment || (marker >= 0xE0 && marker <= 0xEF);
  }
}

/// Reads up to the scan of an image, or tables up to their end.
bool BaselineJpeg::ReadMarkers(Bytes bytes, bool is_image) {
  if (bytes.size() < 2 || bytes[0] != 0xFF || bytes[1] != kStartOfImage) return false;
  bytes = bytes.subspan(2);
  while (bytes.size() >= 2 && bytes[0] == 0xFF) {
    const std::uint8_t marker = bytes[1];
    if (marker == kEndOfImage) return !is_image && count_ == 0;
    if (bytes.size() < 4) return false;
    bytes = bytes.subspan(2);
    const auto size = static_cast<std::size_t>(Word(bytes));
    if (size < 2 || size > bytes.size() || !ReadSegment(marker, bytes.subspan(2, size - 2))) {
      return false;
    }
    bytes = bytes.subspan(size);
    if (marker == kStartOfScan) return CopyScan(bytes);
  }
  return false;
}

/// Takes the scan without the zeros that follow its bytes of ones. It must end with the image.
bool BaselineJpeg::CopyScan(Bytes bytes) {
  if (scan_.size() < bytes.size() + kScanPadding) scan_.resize(bytes.size() + kScanPadding);
  std::uint8_t* out = scan_.data();
  while (true) {
    const auto* mark =
        static_cast<const std::uint8_t*>(std::memchr(bytes.data(), 0xFF, bytes.size()));
    if (mark == nullptr) return false;
    const auto size = static_cast<std::size_t>(mark - bytes.data());
    if (size + 2 > bytes.size()) return false;
    std::memcpy(out, bytes.data(), size);
    out += size;
    if (mark[1] != 0) {
      scan_bits_ = (out - scan_.data()) * 8;
      std::memset(out, 0, kScanPadding);
      return mark[1] == kEndOfImage;
    }
    *out++ = 0xFF;
    bytes = bytes.subspan(size + 2);
  }
}

bool BaselineJpeg::IsAsStated(const JpegPiece& piece, const PixelWindow& window) const {
  const Component& first = components_[0];
  return width_ == piece.width && width_ > 0 && width_ <= kSideMax && height_ >= piece.height &&
         height_ > 0 && height_ <= std::min(piece.height_max, kSideMax) &&
         count_ == piece.components && window.x >= 0 && window.y >= 0 && window.width > 0 &&
         window.height > 0 && window.width <= width_ - window.x &&
         window.height <= height_ - window.y &&
         (first.h == 1 || Groups(width_, 2) >= kDoubledColumnsMin);
}

/// Chooses the blocks that the window needs: in components with fewer samples those beside it too.
void BaselineJpeg::ChooseBlocks(const PixelWindow& window) {
  const int h = components_[0].h, v = components_[0].v;
  mcus_x_ = Groups(width_, 8 * h);
  mcus_y_ = Groups(height_, 8 * v);
  for (int c = 0; c < count_; ++c) {
    Component& component = components_[static_cast<std::size_t>(c)];
    const int step_x = c == 0 ? 1 : h, step_y = c == 0 ? 1 : v;
    component.columns = Groups(width_, step_x);
    component.rows = Groups(height_, step_y);
    const auto range = [](int begin, int size, int step, int samples) {
      const int beside = step == 1 ? 0 : 1;
      const int first = std::max(begin / step - beside, 0);
      const int last = std::min((begin + size - 1) / step + beside, samples - 1);
      return Range{first / 8, last / 8 + 1};
    };
    component.blocks_x = range(window.x, window.width, step_x, component.columns);
    component.blocks_y = range(window.y, window.height, step_y, component.rows);
    component.dc = 0;
    component.stride = 8 * (component.blocks_x.end - component.blocks_x.begin) + 2 * kRowMargin;
    const auto size = static_cast<std::size_t>(component.stride * 16 * component.v);
    if (component.plane.size() < size) component.plane.resize(size);
    const auto width = static_cast<std::size_t>(window.width) + 2 * kRowMargin;
    if (step_x > 1 && doubled_[static_cast<std::size_t>(c)].size() < width) {
      doubled_[static_cast<std::size_t>(c)].resize(width);
    }
  }
  for (Lane& lane : lanes_) lane.filled = lane.last = 0;
}

std::uint8_t* BaselineJpeg::SamplesAt(Component& component, int x, int y) {
  const std::ptrdiff_t row = y & (16 * component.v - 1);
  return component.plane.data() + row * component.stride + kRowMargin + x -
         8 * component.blocks_x.begin;
}

void BaselineJpeg::Transform(Component& component, Lane& lane) {
  const std::int16_t* steps = steps_[component.steps].value;
  std::uint8_t* out = SamplesAt(component, 8 * lane.x, 8 * lane.y);
  if (lane.last == 0) {
    FillPair(lane.blocks, steps, out, component.stride);
    lane.blocks.value[0][0] = lane.blocks.value[1][0] = 0;
  } else {
    TransformPair(lane.blocks, steps, out, component.stride);
    lane.blocks = {};
  }
  lane.filled = lane.last = 0;
}

[[gnu::always_inline]] inline bool BaselineJpeg::ReadBlock(CodeReader& reader, Component& component,
                                                           Lane& lane, int x, int y) {
  if (!ReadDc(reader, codes_[component.dc_codes], component.dc)) return false;
  const CodeTable& codes = codes_[component.ac_codes];
  if (x < component.blocks_x.begin || x >= component.blocks_x.end || y < component.blocks_y.begin ||
      y >= component.blocks_y.end) {
    return SkipAc(reader, codes);
  }
  std::int16_t* block = lane.blocks.value[lane.filled];
  block[0] = static_cast<std::int16_t>(component.dc);
  const int last = ReadAc(reader, codes, block);
  if (last < 0) return false;
  lane.last = std::max(lane.last, last);
  if (lane.filled == 0) {
    lane.x = x;
    lane.y = y;
  }
  if (++lane.filled == 2) Transform(component, lane);
  return true;
}

/// Reads a row of MCUs and transforms the blocks of the window.
bool BaselineJpeg::ReadRow(CodeReader& shared, int mcu_y) {
  CodeReader reader = shared;  // in registers
  for (int mcu_x = 0; mcu_x < mcus_x_; ++mcu_x) {
    for (int c = 0; c < count_; ++c) {
      Component& component = components_[static_cast<std::size_t>(c)];
      for (int v = 0; v < component.v; ++v) {
        Lane& lane = lanes_[static_cast<std::size_t>(c == 0 ? v : c + 1)];
        for (int h = 0; h < component.h; ++h) {
          if (!ReadBlock(reader, component, lane, mcu_x * component.h + h,
                         mcu_y * component.v + v)) {
            return false;
          }
        }
      }
    }
    if (reader.position() > scan_bits_) return false;
  }
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].filled > 0) Transform(components_[i < 2 ? 0 : i - 1], lanes_[i]);
  }
  shared = reader;
  return true;
}

/// A row of samples, its first and last ones repeated beyond the image.
std::uint8_t* BaselineJpeg::EdgedRow(Component& component, int y) {
  std::uint8_t* row = SamplesAt(component, 0, std::clamp(y, 0, component.rows - 1));
  if (component.blocks_x.begin == 0) row[-1] = row[0];
  if (8 * component.blocks_x.end >= component.columns) {
    row[component.columns] = row[component.columns - 1];
  }
  return row;
}

/// Samples of component `c` for the pixels of a row of the window.
std::uint8_t* BaselineJpeg::PixelsOf(std::size_t c, const PixelWindow& window, int y) {
  Component& component = components_[c];
  const int h = components_[0].h, v = components_[0].v;
  if (c == 0 || h == 1) return SamplesAt(component, window.x, y);
  const int first = window.x / 2;
  const int samples = (window.x + window.width - 1) / 2 + 1 - first;
  std::uint8_t* out = doubled_[c].data();
  const std::uint8_t* near = EdgedRow(component, v == 1 ? y : y / 2) + first;
  if (v == 1) {
    DoubleColumns(near, samples, out);
  } else {
    DoubleColumnsBetween(near, EdgedRow(component, y / 2 + (y % 2 == 0 ? -1 : 1)) + first, samples,
                         out);
  }
  return out + window.x % 2;
}

void BaselineJpeg::WriteRow(const PixelWindow& window, int y, std::uint8_t* out) {
  std::uint8_t* first = PixelsOf(0, window, y);
  if (count_ == 1) {
    std::memcpy(out, first, static_cast<std::size_t>(window.width));
    return;
  }
  std::uint8_t* second = PixelsOf(1, window, y);
  std::uint8_t* third = PixelsOf(2, window, y);
  if (is_ycbcr_) ToRgb(first, second, third, window.width);
  InterleaveRow(first, second, third, window.width, out);
}

bool BaselineJpeg::Decode(const JpegPiece& piece, const PixelWindow& window, std::uint8_t* out,
                          std::size_t stride) {
  const auto bytes_of = [](const void* data, std::size_t size) {
    return Bytes(static_cast<const std::uint8_t*>(data), size);
  };
  codes_read_ = steps_read_ = 0;
  count_ = 0;
  is_ycbcr_ = piece.is_ycbcr;
  if (!piece.tables.empty() &&
      !ReadMarkers(bytes_of(piece.tables.data(), piece.tables.size()), false)) {
    return false;
  }
  if (!ReadMarkers(bytes_of(piece.bytes.data(), piece.bytes.size()), true) ||
      !IsAsStated(piece, window)) {
    return false;
  }
  ChooseBlocks(window);
  const int mcu_height = 8 * components_[0].v;
  const int end = window.y + window.height;
  const int last = components_[static_cast<std::size_t>(count_ - 1)].blocks_y.end - 1;
  // Half a row of colour needs the one below it.
  const int held = components_[0].v - 1;
  CodeReader reader(scan_.data());
  int written = window.y;
  for (int mcu_y = 0; mcu_y < mcus_y_; ++mcu_y) {
    if (!ReadRow(reader, mcu_y)) return false;
    const int ready = mcu_y >= last ? end : std::min(end, (mcu_y + 1) * mcu_height - held);
    for (; written < ready; ++written) {
      WriteRow(window, written, out + static_cast<std::size_t>(written - window.y) * stride);
    }
  }
  return reader.position() <= scan_bits_ && scan_bits_ - reader.position() < 8;
}

}  // namespace patchbay::tiles
