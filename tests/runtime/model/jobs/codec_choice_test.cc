// The choice of a codec by its measurements.
#include "runtime/model/jobs/codec_choice.h"

#include <gtest/gtest.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "tests/described.h"

namespace patchbay {
namespace {

constexpr double kMegabyte = 1e6, kGigabyte = 1e9;

/// A slide of 1 GB: 20,000 patches a pass, of which keep reads 300 a core-second, lz4 900 and
/// zstd 500.
CodecMeasures Measures() {
  CodecMeasures measures;
  measures.sources = 1;
  measures.source_bytes = 1'000'000'000;
  measures.kinds = {"aperio"};
  measures.patches = 20'000;
  measures.free_bytes = 100'000'000'000;
  measures.memory_bytes = 32'000'000'000;
  measures.source_read_rate = measures.read_rate = measures.write_rate = 2 * kGigabyte;
  measures.costs = {{"keep", 1 * kGigabyte, 60, 20'000 / 300.0, 2 * kGigabyte},
                    {"lz4", 9 * kGigabyte, 100, 20'000 / 900.0, 36 * kGigabyte},
                    {"zstd", 8 * kGigabyte, 200, 20'000 / 500.0, 32 * kGigabyte}};
  return measures;
}

const CodecForecast& Of(const CodecChoice& choice, std::string_view codec) {
  for (const CodecForecast& one : choice.forecasts) {
    if (one.codec == codec) return one;
  }
  ADD_FAILURE() << codec;
  return choice.forecasts.front();
}

TEST(CodecChoice, EveryFieldComesBack) {
  test::ExpectEveryFieldComesBack<CodecCost>();
  test::ExpectEveryFieldComesBack<CodecMeasures>();
  test::ExpectEveryFieldComesBack<BoundTime>();
  test::ExpectEveryFieldComesBack<CodecForecast>();
  test::ExpectEveryFieldComesBack<CodecChoice>();
}

TEST(CodecChoice, ManyPassesPayForPixelsAndFewForTiles) {
  EXPECT_EQ(ChooseCodec(Measures(), 2, 1)->codec, "keep");
  const auto many = ChooseCodec(Measures(), 2, 50);
  EXPECT_EQ(many->codec, "lz4");
  EXPECT_EQ(many->why, "it takes the least time");
}

TEST(CodecChoice, OfAboutEqualTimesTheSmallestStoreIsTaken) {
  CodecMeasures measures = Measures();
  measures.costs[2].pass_core_s = measures.costs[1].pass_core_s;
  measures.costs[2].ingest_core_s = 110;
  const auto choice = ChooseCodec(measures, 2, 50);
  EXPECT_EQ(choice->codec, "zstd");
  EXPECT_EQ(choice->why, "it is the smallest within a tenth of the time of lz4");
}

TEST(CodecChoice, FreeSpaceLeavesOutWhatDoesNotFit) {
  CodecMeasures measures = Measures();
  measures.free_bytes = 9'000'000'000;
  const auto choice = ChooseCodec(measures, 2, 50);
  EXPECT_FALSE(Of(*choice, "lz4").fits);
  EXPECT_EQ(choice->codec, "zstd");
  measures.free_bytes = 2'000'000'000;
  const auto last = ChooseCodec(measures, 2, 50);
  EXPECT_EQ(last->codec, "keep");
  EXPECT_EQ(last->why, "no other fits into the free space");
  measures.free_bytes = 1'000'000;
  const auto none = ChooseCodec(measures, 2, 50);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(MessageOf(none.status()),
            "no codec fits into the 976.6 KiB that are free: keep 953.7 MiB, lz4 8.4 GiB, zstd 7.5 "
            "GiB");
}

TEST(CodecChoice, TheSlowerOfCoresAndDiskIsTheBottleneck) {
  CodecMeasures measures = Measures();
  measures.source_read_rate = measures.read_rate = measures.write_rate = 100 * kMegabyte;
  const auto slow = ChooseCodec(measures, 2, 10);
  // 90 s to write, to read back and to read once; in memory from then on. An ingest
  // does not hide 0.4 of its 50 s of processor time.
  EXPECT_EQ(Of(*slow, "lz4").ingest, (BoundTime{200, true}));
  EXPECT_EQ(Of(*slow, "lz4").first, (BoundTime{90, true}));
  EXPECT_FALSE(Of(*slow, "lz4").later.is_by_disk);
  EXPECT_DOUBLE_EQ(Of(*slow, "lz4").seconds, 200 + 90 + 9 * Of(*slow, "lz4").later.seconds);
  EXPECT_EQ(Of(*slow, "keep").first.is_by_disk, false);
  measures.is_one_disk = true;  // its source and its checks are read from it
  EXPECT_EQ(Of(*ChooseCodec(measures, 2, 10), "lz4").ingest, (BoundTime{210, true}));
  measures.costs[0].ingest_core_s = 5;  // kept tiles are checked in memory
  EXPECT_EQ(Of(*ChooseCodec(measures, 2, 10), "keep").ingest, (BoundTime{21, true}));
  measures.memory_bytes = 0;  // each patch reads its chunks again
  EXPECT_EQ(Of(*ChooseCodec(measures, 2, 10), "lz4").later, (BoundTime{360, true}));
  EXPECT_EQ(ChooseCodec(measures, 2, 10)->codec, "keep");
}

}  // namespace
}  // namespace patchbay
