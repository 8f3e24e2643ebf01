// The least time an ingest's encoder needs: every chunk of a finished store, compressed again on N
// threads with the settings it was written with, and nothing else timed: by blosc_compress_ctx, and
// by the ingest's own encoder. Also the work of ingest for the colours of a slide: the counts of
// the finest level, a file of them for every zarr shard, their sum and the fits.
//
//   encoder_floor STORE [THREADS]      one JSON object: chunks, raw_bytes, blosc and ours with
//                                      seconds and bytes; colours with seconds of processor time
//                                      and pixels
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <blosc.h>

#include "ops/stain_normalize/fit_stains.h"
#include "ops/stain_normalize/stain_histogram.h"
#include "runtime/core/clock.h"
#include "runtime/format/json/json.h"
#include "runtime/format/zarr/array.h"
#include "runtime/format/zarr/codec/chunk_encoder.h"
#include "runtime/format/zarr/ngff.h"
#include "runtime/os/file.h"

namespace patchbay {
namespace {

struct Job {
  const zarr::Array* array;
  zarr::Coordinates chunk{};
};

/// Every chunk of every level, as the store's metadata lists them.
StatusOr<std::vector<zarr::Array>> OpenLevels(const std::string& store) {
  PB_ASSIGN_OR_RETURN(const zarr::Multiscales scales,
                      zarr::ReadMultiscales(Folders::OfThisUser(), store));
  std::vector<zarr::Array> arrays;
  for (const zarr::NgffLevel& level : scales.levels) {
    PB_ASSIGN_OR_RETURN(zarr::Array array,
                        zarr::Array::Open(Folders::OfThisUser(), StrCat(store, "/", level.path)));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

std::vector<Job> ListChunks(const std::vector<zarr::Array>& arrays, std::int64_t side) {
  std::vector<Job> jobs;
  for (const zarr::Array& array : arrays) {
    const auto& shape = array.metadata().shape;
    for (std::int64_t y = 0; y * side < shape[1]; ++y) {
      for (std::int64_t x = 0; x * side < shape[2]; ++x) jobs.push_back({&array, {0, y, x}});
    }
  }
  return jobs;
}

struct Spent {
  std::int64_t ns = 0;
  std::size_t bytes = 0;
};

/// The chunk as it is stored, edges filled with background.
void ReadChunk(const Job& job, std::int64_t side, std::vector<std::byte>& raw) {
  const auto& shape = job.array->metadata().shape;
  zarr::Region region;
  region.origin = {0, job.chunk[1] * side, job.chunk[2] * side};
  region.shape = {3, std::min(side, shape[1] - region.origin[1]),
                  std::min(side, shape[2] - region.origin[2])};
  TensorView view =
      ContiguousView<3>(raw.data(), DType::kUint8, {3, region.shape[1], region.shape[2]});
  view.stride_bytes = {1, side * 3, 3, 0, 0, 0};
  std::fill(raw.begin(), raw.end(), std::byte{255});
  PB_CHECK(job.array->ReadRegion(region, view).ok());
}

/// Compresses `raw` into `out`; the bytes it takes.
using Encoder = std::function<std::size_t(std::span<const std::byte> raw, std::vector<std::byte>&)>;

Encoder BloscEncoder(const zarr::ImageStoreSettings& settings) {
  const std::string inner = settings.codec == zarr::StoreCodec::kBloscLz4 ? "lz4" : "zstd";
  return [&settings, inner](std::span<const std::byte> raw, std::vector<std::byte>& out) {
    out.resize(raw.size() + BLOSC_MAX_OVERHEAD);
    const int n =
        blosc_compress_ctx(settings.codec_level, BLOSC_NOSHUFFLE, 1, raw.size(), raw.data(),
                           out.data(), out.size(), inner.c_str(), settings.blosc_block_bytes, 1);
    PB_CHECK(n > 0);
    return static_cast<std::size_t>(n);
  };
}

Encoder OwnEncoder(const zarr::ImageStoreSettings& settings) {
  return [encoder = std::make_shared<zarr::ChunkEncoder>(settings)](std::span<const std::byte> raw,
                                                                    std::vector<std::byte>& out) {
    out.clear();
    PB_CHECK(encoder->Append(raw, out).ok());
    return out.size();
  };
}

/// Processor time of this thread, independent of other threads.
std::int64_t ThreadNs() {
  timespec now{};
  PB_CHECK(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Counts the colours of the finest level as ingest does: a histogram, serialised, for each zarr
/// shard's worth of chunks.
class ColourCounts {
 public:
  ColourCounts(const zarr::Array& finest, std::int64_t side, std::int64_t chunks_per_shard)
      : finest_(finest), side_(side), chunks_per_shard_(chunks_per_shard) {}

  void Add(const Job& job, std::vector<std::byte>& raw) {
    if (job.array != &finest_) return;
    const auto& shape = finest_.metadata().shape;
    const std::int64_t height = std::min(side_, shape[1] - job.chunk[1] * side_);
    const std::int64_t width = std::min(side_, shape[2] - job.chunk[2] * side_);
    TensorView view = ContiguousView<3>(raw.data(), DType::kUint8, {height, width, 3});
    view.stride_bytes[0] = side_ * 3;
    const std::int64_t start = ThreadNs();
    PB_CHECK(counter_.Add(view).ok());
    pixels_ += height * width;
    if (++chunks_ % chunks_per_shard_ == 0) TakeShard();
    spent_ns_ += ThreadNs() - start;
  }

  /// The chunks after the last whole shard.
  void Finish() {
    const std::int64_t start = ThreadNs();
    TakeShard();
    spent_ns_ += ThreadNs() - start;
  }

  const std::vector<std::string>& files() const { return files_; }
  std::int64_t spent_ns() const { return spent_ns_; }
  std::int64_t pixels() const { return pixels_; }

 private:
  void TakeShard() {
    const std::vector<std::byte> file = ops::SerialiseHistogram(counter_.Take());
    files_.emplace_back(reinterpret_cast<const char*>(file.data()), file.size());
  }

  const zarr::Array& finest_;
  const std::int64_t side_, chunks_per_shard_;
  ops::StainCounter counter_;
  std::vector<std::string> files_;
  std::int64_t chunks_ = 0, pixels_ = 0, spent_ns_ = 0;
};

/// The time that the counts of all threads took together, with their sum and its fits.
Json ColoursToJson(const std::vector<std::unique_ptr<ColourCounts>>& counts) {
  const std::int64_t start = ThreadNs();
  ops::StainCounter whole;
  std::int64_t pixels = 0, spent_ns = 0;
  for (const auto& own : counts) {
    for (const std::string& file : own->files()) {
      const auto histogram = ops::ParseHistogram(file);
      PB_CHECK(histogram.ok() && whole.Add(*histogram).ok());
    }
    pixels += own->pixels();
    spent_ns += own->spent_ns();
  }
  const ops::StainHistogram sum = whole.Take();
  PB_CHECK(sum.Pixels() == static_cast<std::uint64_t>(pixels));
  const plan::StainFit fit = ops::FitStains(sum);
  spent_ns += ThreadNs() - start;
  return {{"seconds", static_cast<double>(spent_ns) * 1e-9},
          {"pixels", pixels},
          {"tissue_pixels", fit.tissue_pixels}};
}

/// Takes jobs until none is left; returns the time of each encoder, in order.
std::vector<Spent> Encode(const std::vector<Job>& jobs, std::atomic<std::size_t>& next,
                          const zarr::ImageStoreSettings& settings, ColourCounts& colours) {
  const Encoder encoders[] = {BloscEncoder(settings), OwnEncoder(settings)};
  std::vector<std::byte> raw(static_cast<std::size_t>(settings.chunk.y * settings.chunk.y * 3));
  std::vector<std::byte> out;
  std::vector<Spent> spent(std::size(encoders));
  for (std::size_t i = next++; i < jobs.size(); i = next++) {
    ReadChunk(jobs[i], settings.chunk.y, raw);
    colours.Add(jobs[i], raw);
    if (std::all_of(raw.begin(), raw.end(), [](std::byte b) { return b == std::byte{255}; })) {
      continue;  // background is not stored
    }
    for (std::size_t e = 0; e < spent.size(); ++e) {
      const std::int64_t start = SteadyNowNs();
      spent[e].bytes += encoders[e](raw, out);
      spent[e].ns += SteadyNowNs() - start;
    }
  }
  colours.Finish();
  return spent;
}

Json Sum(const std::vector<std::vector<Spent>>& spent, std::size_t encoder) {
  Spent sum;
  for (const auto& of_thread : spent) {
    sum.ns += of_thread[encoder].ns;
    sum.bytes += of_thread[encoder].bytes;
  }
  return {{"seconds", static_cast<double>(sum.ns) * 1e-9 / static_cast<double>(spent.size())},
          {"bytes", sum.bytes}};
}

int Run(const std::string& store, int threads) {
  const auto arrays = OpenLevels(store);
  const auto text = ReadFile(Folders::OfThisUser(), store + "/zarr.json", 1 << 20);
  PB_CHECK(arrays.ok() && text.ok());
  const Json plan = (*ParseJson(*text, "zarr.json"))["attributes"]["patchbay"]["codec_plan"];
  zarr::ImageStoreSettings settings;
  settings.codec = *zarr::StoreCodecFromName(plan["codec"].get<std::string>());
  settings.codec_level = plan["codec_level"];
  settings.chunk = Flat(plan["chunk"], plan["chunk"]);
  const std::vector<Job> jobs = ListChunks(*arrays, settings.chunk.y);
  std::atomic<std::size_t> next{0};
  std::vector<std::vector<Spent>> spent(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  const std::int64_t in_shard = plan["shard"].get<std::int64_t>() / settings.chunk.y;
  std::vector<std::unique_ptr<ColourCounts>> colours;
  for (auto& own : spent) {
    ColourCounts& counts = *colours.emplace_back(
        std::make_unique<ColourCounts>(arrays->front(), settings.chunk.y, in_shard * in_shard));
    running.emplace_back([&] { own = Encode(jobs, next, settings, counts); });
  }
  for (std::thread& thread : running) thread.join();
  const std::int64_t side = settings.chunk.y;
  std::cout << DumpJson({{"chunks", jobs.size()},
                         {"raw_bytes", static_cast<std::int64_t>(jobs.size()) * side * side * 3},
                         {"blosc", Sum(spent, 0)},
                         {"ours", Sum(spent, 1)},
                         {"colours", ColoursToJson(colours)}})
            << "\n";
  return 0;
}

}  // namespace
}  // namespace patchbay

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: encoder_floor STORE [THREADS]\n");
    return 2;
  }
  return patchbay::Run(argv[1], argc > 2 ? std::atoi(argv[2]) : 2);
}
