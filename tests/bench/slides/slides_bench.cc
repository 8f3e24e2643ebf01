// Random reads of a large slide, ours and OpenSlide's in turns, by processor time, and the ratio.
//
//   slides_bench [--seconds S] [--crops N] [--slide FILE] [--side PIXELS] [--threads N]
//   slides_bench --make FILE [--times N]
//   LD_PRELOAD=.../libopenslide.so.1 slides_bench --slide FILE.dcm    (large_dicom.py)
//
// Without --slide, the slide is 24,000 x 31,200 pixels of the real slide's JPEG tiles in
// $PATCHBAY_TEST_DATA, copied 100 times as they are; --times 32 along each side, not 10, make 1.3
// GB. --crops compares that many crops, edges included, pixel by pixel with OpenSlide's.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "tests/workers/sources/slide_fixtures.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

struct BenchOptions {
  double seconds = 2;
  int rounds = 3;
  std::int64_t crops = 1000, side = 512;
  int threads = 1, times = 10;
  std::string slide;
  std::string make;  ///< only writes the large slide there
};

/// A 512 x 512 box wholly inside the level.
Box InnerBox(std::uint64_t seed, std::uint64_t n, const LevelLayout& level, std::int64_t side) {
  DrawKey key;
  key.seed = seed;
  key.ordinal = n;
  const PhiloxBlock a = Draw(key, 0);
  const auto at = [&](std::uint32_t word, std::int64_t size) {
    return static_cast<std::int64_t>(
        UniformBelow(std::uint64_t{word} << 32, static_cast<std::uint64_t>(size - side)));
  };
  return Box2D(at(a.word[0], level.size.y), at(a.word[1], level.size.x), side, side);
}

double ThreadSeconds() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

/// Calls read(n) from each thread for about the given processor time; reads per second of it, of
/// all threads.
template <typename MakeRead>
double Rate(const BenchOptions& options, std::uint64_t round, const MakeRead& make_read) {
  std::vector<double> rates(static_cast<std::size_t>(options.threads));
  std::vector<std::thread> threads;
  for (int t = 0; t < options.threads; ++t) {
    threads.emplace_back([&, t] {
      auto read = make_read();
      std::uint64_t n = round * 1'000'000 + static_cast<std::uint64_t>(t) * 100'000;
      const double start = ThreadSeconds();
      double now = start;
      std::uint64_t done = 0;
      while (now - start < options.seconds) {
        read(n + done++);
        now = ThreadSeconds();
      }
      rates[static_cast<std::size_t>(t)] = static_cast<double>(done) / (now - start);
    });
  }
  double sum = 0;
  for (std::size_t t = 0; t < threads.size(); ++t) {
    threads[t].join();
    sum += rates[t];
  }
  return sum;
}

int CompareCrops(const ImageSource& ours, const std::string& path, const BenchOptions& options) {
  OpenSlidePeer peer(path);
  PatchReader reader(ours);
  std::int64_t wrong = 0;
  for (std::int64_t n = 0; n < options.crops; ++n) {
    const Box box =
        RandomBox(7678, static_cast<std::uint64_t>(n), ours.layout().levels[0], options.side);
    const auto pixels = reader.Read(0, box, 255);
    if (!pixels.ok() || CountDifferences(**pixels, peer.ReadArgb(0, box), 255) != 0) {
      std::printf("crop %ld %s: %s\n", static_cast<long>(n), box.ToString().c_str(),
                  pixels.ok() ? "pixels differ" : Describe(pixels.status()).c_str());
      ++wrong;
    }
  }
  std::printf("crops compared with OpenSlide: %ld, different: %ld\n",
              static_cast<long>(options.crops), static_cast<long>(wrong));
  return wrong == 0 ? 0 : 1;
}

int Bench(const BenchOptions& options) {
  TemporaryFolder folder;
  std::string path = options.slide;
  if (path.empty()) {
    path = options.make.empty() ? folder.File("big.svs") : options.make;
    const Status made = RepeatTiles(TestDataFolder() + "/wsi/CMU-1-Small-Region.svs", options.times,
                                    options.times, path);
    if (!made.ok()) {
      std::fprintf(stderr, "%s\n", Describe(made).c_str());
      return 1;
    }
  }
  if (!options.make.empty()) return 0;
  const auto ours = OpenImage(Folders::OfThisUser(), path);
  OpenSlidePeer peer(path);
  if (!ours.ok() || !peer.ok()) {
    std::fprintf(stderr, "%s\n",
                 ours.ok() ? "OpenSlide cannot open the slide" : Describe(ours.status()).c_str());
    return 1;
  }
  const LevelLayout& level = (*ours)->layout().levels[0];
  std::printf("%ld x %ld pixels, tiles of %ld x %ld, random %ld x %ld, %d thread(s)\n",
              static_cast<long>(level.size.x), static_cast<long>(level.size.y),
              static_cast<long>(level.chunk.x), static_cast<long>(level.chunk.y),
              static_cast<long>(options.side), static_cast<long>(options.side), options.threads);
  std::vector<double> ratios;
  for (int round = 0; round < options.rounds; ++round) {
    const double us = Rate(options, static_cast<std::uint64_t>(round), [&] {
      return [&, reader = std::make_shared<PatchReader>(**ours)](std::uint64_t n) {
        const auto pixels = reader->Read(0, InnerBox(1, n, level, options.side), 255);
        PB_CHECK(pixels.ok());
      };
    });
    const double them = Rate(options, static_cast<std::uint64_t>(round), [&] {
      return [&, argb = std::vector<std::uint32_t>(static_cast<std::size_t>(
                     options.side * options.side))](std::uint64_t n) mutable {
        const Box box = InnerBox(1, n, level, options.side);
        openslide_read_region(peer.get(), argb.data(), box.x, box.y, 0, box.width, box.height);
      };
    });
    ratios.push_back(us / them);
    std::printf("round %d: patchbay %.0f/s, OpenSlide %.0f/s, ratio %.2f\n", round, us, them,
                us / them);
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf("median ratio %.2f\n", ratios[ratios.size() / 2]);
  return CompareCrops(**ours, path, options);
}

int Main(int argc, char** argv) {
  BenchOptions options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--seconds") options.seconds = std::atof(argv[i + 1]);
    if (flag == "--rounds") options.rounds = std::max(1, std::atoi(argv[i + 1]));
    if (flag == "--crops") options.crops = std::atol(argv[i + 1]);
    if (flag == "--side") options.side = std::max(1L, std::atol(argv[i + 1]));
    if (flag == "--threads") options.threads = std::max(1, std::atoi(argv[i + 1]));
    if (flag == "--times") options.times = std::max(1, std::atoi(argv[i + 1]));
    if (flag == "--slide") options.slide = argv[i + 1];
    if (flag == "--make") options.make = argv[i + 1];
  }
  return Bench(options);
}

}  // namespace
}  // namespace patchbay::workers

int main(int argc, char** argv) { return patchbay::workers::Main(argc, argv); }
