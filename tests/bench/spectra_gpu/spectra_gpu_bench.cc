// spectral on a GPU: its kernels alone, from pixels in the GPU's memory to a tally, and the whole
// way from pixels in the host's memory to statistics. Pixels of the image are counted, not of
// frames: at hop 128 every pixel lies in four frames. One line of JSON a figure.
//
// usage: patchbay-bench-spectra-gpu [GPU]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ops/geometry/pixels.h"
#include "ops/spectral/spectral_batches.h"
#include "ops/spectral/spectral_device.h"
#include "ops/spectral/spectral_launch.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"
#include "runtime/memory/host_buffer.h"

namespace patchbay::ops {
namespace {

using Clock = std::chrono::steady_clock;
using spectral_passes::ComplexFloat;
using spectral_passes::GpuTally;
using spectral_passes::RowSum;

/// Launches that are timed together.
constexpr int kLaunches = 200;
/// The image of the whole way: as wide as a slide's panel.
constexpr std::int64_t kImageHeight = 16'640, kImageWidth = 32'896;
constexpr int kRounds = 3;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string NameOfCase(const plan::SpectralOptions& options, bool rgb) {
  return StrCat(NameOf(options.window), " ", NameOf(options.prefilter), " ",
                NameOf(options.channel), rgb ? " from RGB" : " from a plane",
                options.coefficients ? " coefficients" : "");
}

void Print(const Json& figure) {
  std::printf("%s\n", DumpJson(figure).c_str());
  std::fflush(stdout);
}

void Fill(std::span<std::byte> pixels) {
  std::uint32_t state = 1;
  for (std::byte& pixel : pixels) {
    state = state * 1664525u + 1013904223u;
    pixel = static_cast<std::byte>(180 + (state >> 27));
  }
}

/// Device memory of one batch.
struct BatchOnDevice {
  memory::OwnedGpuStream stream;
  memory::DeviceBlock pixels, wanted, strips, spectra, sums, tables, tally;
};

template <typename T>
StatusOr<memory::DeviceBlock> Uploaded(std::span<const T> values, memory::GpuStream stream) {
  PB_ASSIGN_OR_RETURN(memory::DeviceBlock block,
                      memory::DeviceBlock::Allocate(values.size_bytes()));
  PB_RETURN_IF_ERROR(memory::CopyToDevice(block.d_data(), std::as_bytes(values), stream));
  return block;
}

StatusOr<BatchOnDevice> Prepared(const SpectralBatch& batch, const plan::SpectralOptions& options) {
  BatchOnDevice made;
  PB_ASSIGN_OR_RETURN(made.stream, memory::OwnedGpuStream::Create());
  const memory::GpuStream stream = made.stream.get();
  std::vector<std::byte> pixels(static_cast<std::size_t>(batch.height * batch.width * 3));
  Fill(pixels);
  const auto tables = std::make_unique<SpectralTables>(options);
  const auto places =
      static_cast<std::size_t>(batch.rows) * static_cast<std::size_t>(batch.columns);
  PB_ASSIGN_OR_RETURN(made.pixels, Uploaded<std::byte>(pixels, stream));
  PB_ASSIGN_OR_RETURN(made.wanted, Uploaded<std::uint32_t>(batch.wanted, stream));
  PB_ASSIGN_OR_RETURN(made.strips, Uploaded<std::uint32_t>(batch.strips, stream));
  PB_ASSIGN_OR_RETURN(made.tables, Uploaded<SpectralTables>(std::span(tables.get(), 1), stream));
  PB_ASSIGN_OR_RETURN(made.spectra,
                      memory::DeviceBlock::Allocate(places * 128 * sizeof(ComplexFloat)));
  PB_ASSIGN_OR_RETURN(made.sums, memory::DeviceBlock::Allocate(places * sizeof(RowSum)));
  constexpr std::size_t kTallyBytes = sizeof(GpuTally) + 2 * 256 * 129 * 8;
  PB_ASSIGN_OR_RETURN(made.tally, memory::DeviceBlock::Allocate(kTallyBytes));
  PB_RETURN_IF_ERROR(memory::FillDevice(made.tally.d_data(), 0, kTallyBytes, stream));
  PB_RETURN_IF_ERROR(made.stream.WaitSync());
  return made;
}

/// Both kernels, or one of them, over a batch that is on the GPU.
Status MeasureKernels(const plan::SpectralOptions& options, bool rgb) {
  const FrameRange frames = {1, 10, 1, 65};
  const SpectralPlane plane = {nullptr, 0, 0, 0, 4'096, 16'384, 4'096, 16'384};
  const SpectralBatch batch = MakeBatch(frames, frames, {}, plane, options);
  PB_ASSIGN_OR_RETURN(const BatchOnDevice device, Prepared(batch, options));
  const auto* tables = reinterpret_cast<const SpectralTables*>(device.tables.d_data());
  PassMemory memory;
  memory.twiddle = tables->twiddle;
  memory.window = tables->window;
  memory.rings = &tables->rings;
  memory.wanted = reinterpret_cast<const std::uint32_t*>(device.wanted.d_data());
  memory.strips = reinterpret_cast<const std::uint32_t*>(device.strips.d_data());
  memory.spectra = reinterpret_cast<ComplexFloat*>(device.spectra.d_data());
  memory.row_sums = reinterpret_cast<RowSum*>(device.sums.d_data());
  memory.tally = reinterpret_cast<GpuTally*>(device.tally.d_data());
  memory.coefficient_q = reinterpret_cast<std::uint64_t*>(device.tally.d_data() + sizeof(GpuTally));
  memory.coefficient_qq = memory.coefficient_q + 256 * 129;
  const std::int64_t pixel_bytes = rgb ? 3 : 1;
  const spectral_passes::PassPixels pixels = {
      reinterpret_cast<const std::uint8_t*>(device.pixels.d_data()),
      batch.width * pixel_bytes,
      batch.top,
      batch.left,
      plane.image_height,
      plane.image_width,
      static_cast<int>(pixel_bytes),
      -1};
  const auto rows = RowsPassOf(batch, options, pixels, memory);
  const auto columns = ColumnsPassOf(batch, options, memory);
  const memory::GpuStream stream = device.stream.get();
  const auto timed = [&](bool with_rows, bool with_columns) -> StatusOr<double> {
    double seconds = 0;
    for (const int launches : {3, kLaunches}) {  // the first few warm it up
      const auto begin = Clock::now();
      for (int i = 0; i < launches; ++i) {
        if (with_rows) {
          PB_RETURN_IF_ERROR(LaunchOutcome(
              "rows", LaunchSpectralRows(rows, static_cast<int>(batch.strips.size()), stream)));
        }
        if (with_columns) {
          PB_RETURN_IF_ERROR(LaunchOutcome("columns", LaunchSpectralColumns(columns, stream)));
        }
      }
      PB_RETURN_IF_ERROR(device.stream.WaitSync());
      seconds = SecondsSince(begin) / launches;
    }
    return seconds;
  };
  PB_ASSIGN_OR_RETURN(const double rows_s, timed(true, false));
  PB_ASSIGN_OR_RETURN(const double columns_s, timed(false, true));
  PB_ASSIGN_OR_RETURN(const double both_s, timed(true, true));
  const double count = static_cast<double>(batch.wanted.size());
  Print(Json{{"what", "spectra, kernels alone: " + NameOfCase(options, rgb)},
             {"ms", both_s * 1e3},
             {"rows_ms", rows_s * 1e3},
             {"columns_ms", columns_s * 1e3},
             {"bytes", batch.height * batch.width * pixel_bytes},
             {"gpx_per_s", count * options.hop * options.hop / both_s / 1e9},
             {"frames_per_s", count / both_s}});
  return absl::OkStatus();
}

/// From ordinary host memory to sums, strip by strip of 1,024 rows.
Status MeasureWhole(const plan::SpectralOptions& options, bool rgb, int gpu,
                    std::span<const std::byte> image) {
  PB_ASSIGN_OR_RETURN(const auto frames, CreateDeviceSpectralFrames(options, gpu));
  const std::int64_t pixel_bytes = rgb ? 3 : 1;
  const SpectralPlane plane = {reinterpret_cast<const std::uint8_t*>(image.data()),
                               kImageWidth * pixel_bytes,
                               0,
                               0,
                               kImageHeight,
                               kImageWidth,
                               kImageHeight,
                               kImageWidth};
  const std::int64_t rows = plan::FramesAlong(kImageHeight, options);
  const std::int64_t columns = plan::FramesAlong(kImageWidth, options);
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<SpectralSums> sums(static_cast<std::size_t>(plan::SpectralChannels(options)),
                                   SpectralSums(options));
    const auto begin = Clock::now();
    for (std::int64_t row = 0; row < rows; row += 8) {
      const FrameRange strip = {row, std::min(row + 8, rows), 0, columns};
      PB_RETURN_IF_ERROR(rgb ? frames->AddRgb(plane, strip, {}, sums)
                             : frames->Add(plane, strip, {}, sums[0]));
    }
    PB_RETURN_IF_ERROR(frames->Finish());
    const double gigapixels = static_cast<double>(kImageHeight * kImageWidth) / 1e9;
    best = std::max(best, gigapixels / SecondsSince(begin));
    if (sums[0].frames != static_cast<std::uint64_t>(rows * columns)) {
      return absl::InternalError("frames were lost");
    }
  }
  Print(Json{{"what", "spectra, host memory to statistics: " + NameOfCase(options, rgb)},
             {"ms", static_cast<double>(kImageHeight * kImageWidth) / best / 1e6},
             {"bytes", static_cast<std::int64_t>(image.size())},
             {"gpx_per_s", best}});
  return absl::OkStatus();
}

std::vector<plan::SpectralOptions> Cases() {
  return {{},
          {.window = plan::SpectralWindow::kHann},
          {.prefilter = plan::SpectralPrefilter::kGauss7},
          {.coefficients = true}};
}

Status Measure(int gpu) {
  PB_RETURN_IF_ERROR(memory::SelectGpu(gpu));
  for (const plan::SpectralOptions& options : Cases()) {
    for (const bool rgb : {false, true}) PB_RETURN_IF_ERROR(MeasureKernels(options, rgb));
  }
  PB_ASSIGN_OR_RETURN(
      const memory::HostBuffer image,
      memory::HostBuffer::Allocate(static_cast<std::uint64_t>(3 * kImageHeight * kImageWidth)));
  Fill(image.bytes());
  for (const plan::SpectralOptions& options : Cases()) {
    for (const bool rgb : {false, true}) {
      PB_RETURN_IF_ERROR(MeasureWhole(options, rgb, gpu, image.bytes()));
    }
  }
  return MeasureWhole({.channel = plan::SpectralChannel::kRgb}, true, gpu, image.bytes());
}

int Main(int argc, char** argv) {
  std::string reason;
  const auto gpus = memory::ListGpus(&reason);
  if (gpus.empty()) {
    std::printf("no GPU: %s; nothing measured\n", reason.c_str());
    return 0;
  }
  const int gpu = argc > 1 ? std::atoi(argv[1]) : 0;
  for (const auto& one : gpus) {
    if (one.index == gpu) std::fprintf(stderr, "%s\n", one.name.c_str());
  }
  const Status measured = Measure(gpu);
  if (measured.ok()) return 0;
  std::fprintf(stderr, "%s\n", Describe(measured).c_str());
  return 1;
}

}  // namespace
}  // namespace patchbay::ops

int main(int argc, char** argv) { return patchbay::ops::Main(argc, argv); }
