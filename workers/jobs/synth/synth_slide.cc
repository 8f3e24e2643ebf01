#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/os/work_meter.h"
#include "workers/jobs/synth/synth.h"
#include "workers/jobs/synth/synth_tissue.h"
#include "workers/sources/jpeg_encoder.h"
#include "workers/sources/tiff_writer.h"

namespace patchbay::workers {
namespace {

constexpr int kTile = TissueField::kTile;
constexpr int kStep = 4;  ///< from level to level, as Aperio does
constexpr int kReducedLevels = 2;
constexpr int kThumbnailSide = 1024;
constexpr int kThumbnailRows = 16;  ///< per strip
constexpr std::uint8_t kBackground = 243;
constexpr std::size_t kTileBytes = std::size_t{kTile} * kTile * 3;

using Rgb = std::vector<std::uint8_t>;

/// The offsets and sizes of one level's tiles, row by row.
struct WrittenTiles {
  std::vector<std::uint64_t> offset, size_bytes;
};

/// Averages squares of `step` pixels (half up) of a tile into `out`, `stride` bytes per row.
void Average(const std::uint8_t* tile, int step, std::uint8_t* out, std::size_t stride) {
  const int half = step * step / 2;
  for (int y = 0; y < kTile / step; ++y) {
    for (int x = 0; x < kTile / step; ++x) {
      for (int c = 0; c < 3; ++c) {
        int sum = half;
        for (int dy = 0; dy < step; ++dy) {
          const std::uint8_t* p = tile + ((y * step + dy) * kTile + x * step) * 3 + c;
          for (int dx = 0; dx < step; ++dx) sum += p[3 * dx];
        }
        out[static_cast<std::size_t>(y) * stride + static_cast<std::size_t>(x * 3 + c)] =
            static_cast<std::uint8_t>(sum / (step * step));
      }
    }
  }
}

/// One row of tiles of a reduced level, filled from the level below.
struct TileRow {
  std::int64_t columns = 0;
  std::int64_t next = 0;  ///< index of the row of tiles to be written next
  int filled = 0;         ///< quarter rows that are filled
  Rgb pixels;             ///< kTile rows of columns * kTile pixels

  void Clear() {
    filled = 0;
    std::fill(pixels.begin(), pixels.end(), kBackground);
  }
  std::size_t Stride() const { return static_cast<std::size_t>(columns) * kTile * 3; }
};

/// The whole slide at a small size, gathered from the coarsest level.
class Thumbnail {
 public:
  Thumbnail(std::int64_t height, std::int64_t width)
      : step_(std::max<std::int64_t>(
            1, (std::max(height, width) + kThumbnailSide - 1) / kThumbnailSide)),
        height_(height / step_),
        width_(width / step_),
        sums_(static_cast<std::size_t>(height_ * width_ * 3)) {}

  int height() const { return static_cast<int>(height_); }
  int width() const { return static_cast<int>(width_); }

  /// Adds a tile of the coarsest level at pixel (y, x) of it.
  void Add(const std::uint8_t* tile, std::int64_t y, std::int64_t x) {
    for (std::int64_t i = 0; i < kTile && (y + i) / step_ < height_; ++i) {
      for (std::int64_t k = 0; k < kTile && (x + k) / step_ < width_; ++k) {
        const auto at = static_cast<std::size_t>(((y + i) / step_ * width_ + (x + k) / step_) * 3);
        for (std::size_t c = 0; c < 3; ++c) {
          sums_[at + c] += tile[static_cast<std::size_t>((i * kTile + k) * 3) + c];
        }
      }
    }
  }

  Rgb Pixels() const {
    Rgb pixels(sums_.size());
    const auto area = static_cast<std::uint32_t>(step_ * step_);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<std::uint8_t>((sums_[i] + area / 2) / area);
    }
    return pixels;
  }

 private:
  std::int64_t step_, height_, width_;
  std::vector<std::uint32_t> sums_;
};

class SlideMaker {
 public:
  SlideMaker(const SynthSlideOptions& options, TiffWriter writer)
      : options_(options),
        writer_(std::move(writer)),
        field_(options.seed),
        thumbnail_(options.height / (kStep * kStep), options.width / (kStep * kStep)) {
    std::int64_t width = options.width;
    for (TileRow& row : rows_) {
      width /= kStep;
      row.columns = (width + kTile - 1) / kTile;
      row.pixels.resize(row.Stride() * kTile);
      row.Clear();
    }
    for (int i = 0; i < options.threads; ++i)
      makers_.push_back(std::make_unique<Maker>(options.quality));
  }

  Status Make(const SynthProgress& progress);

 private:
  /// The state of one thread.
  struct Maker {
    explicit Maker(int quality) : encoder(quality), rgb(kTileBytes) {}
    JpegEncoder encoder;
    TissueField::Scratch scratch;
    Rgb rgb;
    Status status;
  };

  std::int64_t Columns(int level) const {
    return level == 0 ? (options_.width + kTile - 1) / kTile
                      : rows_[static_cast<std::size_t>(level - 1)].columns;
  }
  std::int64_t Side(std::int64_t side, int level) const {
    for (int i = 0; i < level; ++i) side /= kStep;
    return side;
  }
  Status MakeFinestRow(std::int64_t row);
  Status FinishReducedRow(int level);
  Status AppendTile(int level, std::span<const std::byte> bytes);
  Status WriteThumbnail(const std::string& tables);
  TiffFields PixelFields(std::int64_t width, std::int64_t height, const std::string& tables) const;

  SynthSlideOptions options_;
  TiffWriter writer_;
  TissueField field_;
  Thumbnail thumbnail_;
  std::array<TileRow, kReducedLevels> rows_;
  std::array<WrittenTiles, kReducedLevels + 1> tiles_;
  std::vector<std::unique_ptr<Maker>> makers_;
  std::vector<std::vector<std::byte>> encoded_;
};

Status SlideMaker::AppendTile(int level, std::span<const std::byte> bytes) {
  PB_ASSIGN_OR_RETURN(const std::uint64_t offset, writer_.Append(bytes));
  WrittenTiles& written = tiles_[static_cast<std::size_t>(level)];
  written.offset.push_back(offset);
  written.size_bytes.push_back(bytes.size());
  return absl::OkStatus();
}

/// Renders and encodes one row of level 0, its tiles shared out over the threads.
Status SlideMaker::MakeFinestRow(std::int64_t row) {
  const std::int64_t columns = Columns(0);
  encoded_.resize(static_cast<std::size_t>(columns));
  TileRow& below = rows_[0];
  const std::size_t band =
      static_cast<std::size_t>(below.filled) * (kTile / kStep) * below.Stride();
  std::atomic<std::int64_t> next = 0;
  const auto work = [&](Maker& maker) {
    for (std::int64_t column = next++; column < columns && maker.status.ok(); column = next++) {
      field_.Render(row * kTile, column * kTile, maker.scratch, maker.rgb.data());
      maker.status = maker.encoder.Encode({maker.rgb.data(), kTile, kTile},
                                          encoded_[static_cast<std::size_t>(column)]);
      const std::size_t left = static_cast<std::size_t>(column) * (kTile / kStep) * 3;
      Average(maker.rgb.data(), kStep, below.pixels.data() + band + left, below.Stride());
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < makers_.size(); ++i)
    threads.emplace_back(Metered(work), std::ref(*makers_[i]));
  work(*makers_[0]);
  for (std::thread& thread : threads) thread.join();
  for (const auto& maker : makers_) PB_RETURN_IF_ERROR(maker->status);
  for (const auto& bytes : encoded_) PB_RETURN_IF_ERROR(AppendTile(0, bytes));
  ++below.filled;
  return absl::OkStatus();
}

/// Encodes the gathered row of a reduced level and hands it on to the next one.
Status SlideMaker::FinishReducedRow(int level) {
  TileRow& row = rows_[static_cast<std::size_t>(level - 1)];
  if (row.filled == 0) return absl::OkStatus();
  const bool is_coarsest = level == kReducedLevels;
  Maker& maker = *makers_[0];
  std::vector<std::byte> bytes;
  for (std::int64_t column = 0; column < row.columns; ++column) {
    const std::uint8_t* left = row.pixels.data() + static_cast<std::size_t>(column) * kTile * 3;
    for (std::size_t y = 0; y < kTile; ++y) {
      std::copy_n(left + y * row.Stride(), kTile * 3, maker.rgb.data() + y * kTile * 3);
    }
    PB_RETURN_IF_ERROR(maker.encoder.Encode({maker.rgb.data(), kTile, kTile}, bytes));
    PB_RETURN_IF_ERROR(AppendTile(level, bytes));
    if (is_coarsest) {
      thumbnail_.Add(maker.rgb.data(), row.next * kTile, column * kTile);
      continue;
    }
    TileRow& below = rows_[static_cast<std::size_t>(level)];
    const std::size_t band =
        static_cast<std::size_t>(below.filled) * (kTile / kStep) * below.Stride();
    const std::size_t at = static_cast<std::size_t>(column) * (kTile / kStep) * 3;
    Average(maker.rgb.data(), kStep, below.pixels.data() + band + at, below.Stride());
  }
  ++row.next;
  row.Clear();
  if (!is_coarsest) ++rows_[static_cast<std::size_t>(level)].filled;
  return absl::OkStatus();
}

TiffFields SlideMaker::PixelFields(std::int64_t width, std::int64_t height,
                                   const std::string& tables) const {
  TiffFields fields;
  fields.Long(254, 0);
  fields.Long(256, static_cast<std::uint32_t>(width));
  fields.Long(257, static_cast<std::uint32_t>(height));
  fields.Short(258, {8, 8, 8});
  fields.Short(259, {7});
  fields.Short(262, {2});
  fields.Short(277, {3});
  fields.Short(284, {1});
  fields.Bytes(347, tables);
  fields.Long(32997, 1);
  return fields;
}

/// The second directory: strips, as in every Aperio slide.
Status SlideMaker::WriteThumbnail(const std::string& tables) {
  const Rgb pixels = thumbnail_.Pixels();
  const int width = thumbnail_.width(), height = thumbnail_.height();
  WrittenTiles strips;
  std::vector<std::byte> bytes;
  for (int y = 0; y < height; y += kThumbnailRows) {
    const RgbImage strip{
        pixels.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(width) * 3, width,
        std::min(kThumbnailRows, height - y)};
    PB_RETURN_IF_ERROR(makers_[0]->encoder.Encode(strip, bytes));
    PB_ASSIGN_OR_RETURN(const std::uint64_t offset, writer_.Append(bytes));
    strips.offset.push_back(offset);
    strips.size_bytes.push_back(bytes.size());
  }
  TiffFields fields = PixelFields(width, height, tables);
  fields.Text(270,
              StrCat("Aperio Image Library, synthetic\r\n", options_.width, "x", options_.height,
                     " -> ", width, "x", height, " - |AppMag = 20|MPP = 0.5000"));
  fields.Long(278, kThumbnailRows);
  fields.Offsets(273, std::move(strips.offset));
  fields.Offsets(279, std::move(strips.size_bytes));
  writer_.AddDirectory(std::move(fields));
  return absl::OkStatus();
}

Status SlideMaker::Make(const SynthProgress& progress) {
  const std::int64_t rows = (options_.height + kTile - 1) / kTile;
  for (std::int64_t row = 0; row < rows; ++row) {
    PB_RETURN_IF_ERROR(MakeFinestRow(row));
    for (int level = 1; level <= kReducedLevels; ++level) {
      const std::int64_t needed = (Side(options_.height, level) + kTile - 1) / kTile;
      TileRow& reduced = rows_[static_cast<std::size_t>(level - 1)];
      const bool is_full = reduced.filled == kStep || row + 1 == rows;
      if (is_full && reduced.next < needed) PB_RETURN_IF_ERROR(FinishReducedRow(level));
    }
    const double done = static_cast<double>(row + 1) / static_cast<double>(rows);
    if (progress && !progress(done)) return Cancelled("synth slide: cancelled");
  }
  PB_ASSIGN_OR_RETURN(const std::string tables, makers_[0]->encoder.Tables());
  for (int level = 0; level <= kReducedLevels; ++level) {
    const std::int64_t width = Side(options_.width, level), height = Side(options_.height, level);
    TiffFields fields = PixelFields(width, height, tables);
    fields.Text(270, StrCat("Aperio Image Library, synthetic\r\n", options_.width, "x",
                            options_.height, " [0,0 ", width, "x", height, "] (", kTile, "x", kTile,
                            ") JPEG/RGB Q=", options_.quality, "|AppMag = 20|MPP = 0.5000"));
    fields.Long(322, kTile);
    fields.Long(323, kTile);
    WrittenTiles& written = tiles_[static_cast<std::size_t>(level)];
    fields.Offsets(324, std::move(written.offset));
    fields.Offsets(325, std::move(written.size_bytes));
    writer_.AddDirectory(std::move(fields));
    if (level == 0) PB_RETURN_IF_ERROR(WriteThumbnail(tables));
  }
  return writer_.Commit();
}

}  // namespace

Status SynthSlide(const Folders& allowed, const std::string& path, const SynthSlideOptions& options,
                  const SynthProgress& progress) {
  // A tile never takes more than its raw bytes; half of that is far above what any quality gives.
  const bool is_big = options.width * options.height * 3 / 2 > (std::int64_t{1} << 32) - (1 << 28);
  PB_ASSIGN_OR_RETURN(TiffWriter writer, TiffWriter::Create(allowed, path, is_big));
  return std::make_unique<SlideMaker>(options, std::move(writer))->Make(progress);
}

}  // namespace patchbay::workers
