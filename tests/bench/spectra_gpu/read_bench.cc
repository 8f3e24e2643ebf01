// Reading alone: the finest level of an image, fetched and decoded to host memory by every core.
// The lower bound of spectra of it, on any processor. One line of JSON.
//
// usage: patchbay-bench-read IMAGE|FOLDER [THREADS]     of a folder, its first store
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kBandColumns = 16;  ///< chunks that are read at once

/// Free threads take bands of the image, one chunk high.
Status ReadBands(const ImageSource& source, std::atomic<std::int64_t>& next) {
  const LevelLayout& level = source.layout().levels[0];
  const std::int64_t channels = source.layout().channels, side = level.chunk.x * kBandColumns;
  const auto scratch = source.MakeScratch();
  const std::size_t element = SizeOf(source.layout().dtype);
  std::vector<std::byte> pixels(static_cast<std::size_t>(side * level.chunk.y * channels) *
                                element);
  EncodedPatch patch;
  for (;;) {
    const std::int64_t y = next.fetch_add(level.chunk.y);
    if (y >= level.size.y) return absl::OkStatus();
    for (std::int64_t x = 0; x < level.size.x; x += side) {
      const Box box =
          Box2D(y, x, std::min(level.chunk.y, level.size.y - y), std::min(side, level.size.x - x));
      PB_RETURN_IF_ERROR(source.Fetch(0, box, patch));
      const auto view = ContiguousView<3>(pixels.data(), source.layout().dtype,
                                          {box.height, box.width, channels});
      PB_RETURN_IF_ERROR(source.Decode(patch, view, 0, *scratch));
    }
  }
}

StatusOr<double> SecondsOf(const ImageSource& source, int threads) {
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<std::int64_t> next = 0;
  std::vector<Status> ends(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> readers;
    for (Status& end : ends) {
      readers.emplace_back([&source, &next, &end] { end = ReadBands(source, next); });
    }
  }
  for (const Status& end : ends) PB_RETURN_IF_ERROR(end);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The first store of a folder, by name; or the path itself.
std::string ImageIn(const std::string& path) {
  std::vector<std::string> stores;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (entry.path().extension() == ".zarr") stores.push_back(entry.path());
  }
  return stores.empty() ? path : *std::min_element(stores.begin(), stores.end());
}

Status Measure(const std::string& path, int threads) {
  PB_ASSIGN_OR_RETURN(const auto source, OpenImage(Folders::OfThisUser(), ImageIn(path)));
  const LevelLayout& level = source->layout().levels[0];
  if (level.size.z != 1) {
    return absl::InvalidArgumentError(StrCat("read ", path, ": 2-D images only"));
  }
  PB_ASSIGN_OR_RETURN(const double seconds, SecondsOf(*source, threads));
  const auto pixels = static_cast<double>(level.size.y * level.size.x);
  const auto bytes = static_cast<std::int64_t>(pixels) * source->layout().channels *
                     static_cast<std::int64_t>(SizeOf(source->layout().dtype));
  const Json figure{{"what", StrCat("read and decode alone, ", threads, " threads")},
                    {"ms", seconds * 1e3},
                    {"bytes", bytes},
                    {"gpx_per_s", pixels / seconds / 1e9}};
  std::printf("%s\n", DumpJson(figure).c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace patchbay::workers

int main(int argc, char** argv) {
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int threads = argc == 3 ? std::atoi(argv[2]) : cores;
  if (argc < 2 || argc > 3 || threads < 1 || threads > 1024) {
    std::fprintf(stderr, "usage: patchbay-bench-read IMAGE|FOLDER [THREADS] (1 to 1024)\n");
    return 2;
  }
  const patchbay::Status measured = patchbay::workers::Measure(argv[1], threads);
  if (measured.ok()) return 0;
  std::fprintf(stderr, "patchbay-bench-read: %s\n", patchbay::Describe(measured).c_str());
  return 1;
}
