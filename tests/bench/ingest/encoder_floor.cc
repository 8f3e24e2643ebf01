// The least time an ingest's encoder needs: every chunk of a finished store, compressed again on N
// threads with the settings it was written with, and nothing else timed: by blosc_compress_ctx, and
// by the ingest's own encoder.
//
//   encoder_floor STORE [THREADS]      one JSON object: chunks, raw_bytes, blosc and ours with
//                                      seconds and bytes
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include <blosc.h>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/zarr/array.h"
#include "runtime/zarr/chunk_encoder.h"
#include "runtime/zarr/ngff.h"

namespace patchbay {
namespace {

struct Job {
  const zarr::Array* array;
  zarr::Coordinates chunk{};
};

/// Every chunk of every level, as the store's metadata lists them.
StatusOr<std::vector<zarr::Array>> OpenLevels(const std::string& store) {
  PB_ASSIGN_OR_RETURN(const zarr::Multiscales scales, zarr::ReadMultiscales(store));
  std::vector<zarr::Array> arrays;
  for (const zarr::NgffLevel& level : scales.levels) {
    PB_ASSIGN_OR_RETURN(zarr::Array array, zarr::Array::Open(StrCat(store, "/", level.path)));
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

/// Takes jobs until none is left; what each encoder spent, in their order.
std::vector<Spent> Encode(const std::vector<Job>& jobs, std::atomic<std::size_t>& next,
                          const zarr::ImageStoreSettings& settings) {
  const Encoder encoders[] = {BloscEncoder(settings), OwnEncoder(settings)};
  std::vector<std::byte> raw(static_cast<std::size_t>(settings.chunk.y * settings.chunk.y * 3));
  std::vector<std::byte> out;
  std::vector<Spent> spent(std::size(encoders));
  for (std::size_t i = next++; i < jobs.size(); i = next++) {
    ReadChunk(jobs[i], settings.chunk.y, raw);
    if (std::all_of(raw.begin(), raw.end(), [](std::byte b) { return b == std::byte{255}; })) {
      continue;  // background is not stored
    }
    for (std::size_t e = 0; e < spent.size(); ++e) {
      const std::int64_t start = SteadyNowNs();
      spent[e].bytes += encoders[e](raw, out);
      spent[e].ns += SteadyNowNs() - start;
    }
  }
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
  const auto text = ReadFile(store + "/zarr.json", 1 << 20);
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
  for (auto& own : spent) running.emplace_back([&] { own = Encode(jobs, next, settings); });
  for (std::thread& thread : running) thread.join();
  const std::int64_t side = settings.chunk.y;
  std::cout << DumpJson({{"chunks", jobs.size()},
                         {"raw_bytes", static_cast<std::int64_t>(jobs.size()) * side * side * 3},
                         {"blosc", Sum(spent, 0)},
                         {"ours", Sum(spent, 1)}})
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
