// Baseline JPEG, the form of nearly every tile, decoded without libjpeg.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/format/tiles/jpeg_codes.h"
#include "runtime/format/tiles/jpeg_decoder.h"
#include "runtime/format/tiles/jpeg_samples.h"
#include "runtime/format/tiles/tile_format.h"

namespace patchbay::tiles {

/// Decodes sequential JPEG of 8 bits in one scan without restart intervals: grey, or three
/// components of which the second and third have as many samples as the first, half the columns, or
/// half the columns and rows. Tables and memory are kept from image to image. One thread at a time.
class BaselineJpeg {
 public:
  /// Writes the pixels of `window`, the bytes that JpegDecoder promises. False, with any bytes in
  /// the window, for another form of JPEG and for every image that libjpeg could refuse: libjpeg
  /// decides then, and names what is wrong. All codes are read, those outside the window too.
  bool Decode(const JpegPiece& piece, const PixelWindow& window, std::uint8_t* out,
              std::size_t stride);

 private:
  using Bytes = std::span<const std::uint8_t>;

  /// Blocks [begin, end) of a row or column of them.
  struct Range {
    int begin = 0, end = 0;
  };

  struct Component {
    int h = 1, v = 1;           ///< blocks of an MCU
    int columns = 0, rows = 0;  ///< samples, without those that fill up blocks
    std::uint8_t id = 0, steps = 0, dc_codes = 0, ac_codes = 0;
    Range blocks_x, blocks_y;         ///< blocks that the window needs
    std::uint32_t dc = 0;             ///< first coefficient of the last block
    std::vector<std::uint8_t> plane;  ///< samples of two rows of MCUs, in turns
    std::ptrdiff_t stride = 0;
  };

  /// Two neighbouring blocks of a component, which are transformed together.
  struct Lane {
    BlockPair blocks{};
    int filled = 0;    ///< blocks read
    int last = 0;      ///< number of the last coefficient of either
    int x = 0, y = 0;  ///< the first block
  };

  struct alignas(32) Steps {
    std::int16_t value[kBlockSize] = {};
  };

  bool ReadMarkers(Bytes bytes, bool is_image);
  bool ReadSegment(std::uint8_t marker, Bytes segment);
  bool ReadSteps(Bytes segment);
  bool ReadCodes(Bytes segment);
  bool ReadFrame(Bytes segment);
  bool ReadScanHeader(Bytes segment);
  bool CopyScan(Bytes bytes);
  bool IsAsStated(const JpegPiece& piece, const PixelWindow& window) const;
  void ChooseBlocks(const PixelWindow& window);
  bool ReadRow(CodeReader& reader, int mcu_y);
  bool ReadBlock(CodeReader& reader, Component& component, Lane& lane, int x, int y);
  void Transform(Component& component, Lane& lane);
  std::uint8_t* SamplesAt(Component& component, int x, int y);
  std::uint8_t* EdgedRow(Component& component, int y);
  std::uint8_t* PixelsOf(std::size_t c, const PixelWindow& window, int y);
  void WriteRow(const PixelWindow& window, int y, std::uint8_t* out);

  std::array<CodeTable, 8> codes_;  ///< 4 for first coefficients, 4 for the others
  std::array<Steps, 4> steps_;
  std::uint32_t codes_read_ = 0, steps_read_ = 0;  ///< bits of the tables that this image has
  std::array<Component, 3> components_;
  std::array<Lane, 4> lanes_;
  int count_ = 0;  ///< components; 0 before the frame
  int width_ = 0, height_ = 0;
  int mcus_x_ = 0, mcus_y_ = 0;
  bool is_ycbcr_ = false;
  std::vector<std::uint8_t> scan_;  ///< the bytes of the scan without stuffed zeros
  std::int64_t scan_bits_ = 0;
  std::array<std::vector<std::uint8_t>, 3> doubled_;  ///< a row of each component at full width
};

}  // namespace patchbay::tiles
