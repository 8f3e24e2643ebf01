// The least time an ingest's encoder needs: every stored chunk of a finished store, compressed
// again on N threads with the settings it was written with, and nothing else timed.
//
//   encoder_floor STORE [THREADS]      one JSON object: chunks, raw_bytes, seconds
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

#include <blosc.h>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/zarr/array.h"
#include "runtime/zarr/ngff.h"

namespace patchbay {
namespace {

struct Job {
  const zarr::Array* array;
  zarr::Coordinates chunk{};
};

struct Codec {
  std::string name;
  int level = 5;
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

/// Takes jobs until none is left; nanoseconds spent in the encoder.
std::int64_t Encode(const std::vector<Job>& jobs, std::atomic<std::size_t>& next, std::int64_t side,
                    const Codec& codec) {
  std::vector<std::byte> raw(static_cast<std::size_t>(side * side * 3)),
      out(raw.size() + BLOSC_MAX_OVERHEAD);
  std::int64_t spent_ns = 0;
  for (std::size_t i = next++; i < jobs.size(); i = next++) {
    const auto& shape = jobs[i].array->metadata().shape;
    zarr::Region region;
    region.origin = {0, jobs[i].chunk[1] * side, jobs[i].chunk[2] * side};
    region.shape = {3, std::min(side, shape[1] - region.origin[1]),
                    std::min(side, shape[2] - region.origin[2])};
    TensorView view =
        ContiguousView<3>(raw.data(), DType::kUint8, {3, region.shape[1], region.shape[2]});
    view.stride_bytes = {1, side * 3, 3, 0, 0, 0};
    std::fill(raw.begin(), raw.end(), std::byte{255});
    PB_CHECK(jobs[i].array->ReadRegion(region, view).ok());
    const std::int64_t start = SteadyNowNs();
    PB_CHECK(blosc_compress_ctx(codec.level, BLOSC_NOSHUFFLE, 1, raw.size(), raw.data(), out.data(),
                                out.size(), codec.name.c_str(), 131072, 1) > 0);
    spent_ns += SteadyNowNs() - start;
  }
  return spent_ns;
}

int Run(const std::string& store, int threads) {
  const auto arrays = OpenLevels(store);
  const auto text = ReadFile(store + "/zarr.json", 1 << 20);
  PB_CHECK(arrays.ok() && text.ok());
  const Json plan = (*ParseJson(*text, "zarr.json"))["attributes"]["patchbay"]["codec_plan"];
  const Codec codec{plan["codec"], plan["codec_level"]};
  const std::int64_t side = plan["chunk"];
  const std::vector<Job> jobs = ListChunks(*arrays, side);
  std::atomic<std::size_t> next{0};
  std::vector<std::int64_t> spent(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (auto& ns : spent) running.emplace_back([&] { ns = Encode(jobs, next, side, codec); });
  for (std::thread& thread : running) thread.join();
  std::int64_t sum = 0;
  for (const std::int64_t ns : spent) sum += ns;
  std::cout << DumpJson({{"chunks", jobs.size()},
                         {"raw_bytes", static_cast<std::int64_t>(jobs.size()) * side * side * 3},
                         {"seconds", static_cast<double>(sum) * 1e-9 / threads}})
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
