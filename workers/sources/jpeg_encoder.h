// JPEG tiles as slides hold them: abbreviated streams that share one set of tables.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::workers {

/// Interleaved RGB, rows without gaps.
struct RgbImage {
  const std::uint8_t* data = nullptr;
  int width = 0, height = 0;
};

/// Encodes RGB unconverted (no YCbCr, no subsampling, no Adobe or JFIF marker), as Aperio does: the
/// container states that it is RGB. The same pixels give the same bytes. For one thread at a time.
class JpegEncoder {
 public:
  /// `quality` 1 .. 100.
  explicit JpegEncoder(int quality);
  ~JpegEncoder();
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;

  /// The stream of tables that Encode's output leaves out (TIFF tag 347).
  StatusOr<std::string> Tables();

  /// An abbreviated stream.
  Status Encode(const RgbImage& image, std::vector<std::byte>& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace patchbay::workers
