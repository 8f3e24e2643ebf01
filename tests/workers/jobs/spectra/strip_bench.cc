// Where a strip's time goes: reading and decoding alone, measuring alone, and a whole strip.
// PATCHBAY_BENCH_SLIDE names a slide; else one is made of the real slide's tiles.
#include <cstdlib>
#include <memory>

#include <benchmark/benchmark.h>

#include "ops/all_ops.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "workers/jobs/spectra/strip.h"

namespace patchbay::workers {
namespace {

/// The slide that is measured, and a strip of it; nothing when there is no slide.
struct Subject {
  TemporaryFolder folder;
  std::unique_ptr<ImageSource> image;
  SpectraSettings settings;
  ops::FrameRange frames;

  Subject() {
    const char* named = std::getenv("PATCHBAY_BENCH_SLIDE");
    std::string path = named != nullptr ? named : folder.File("slide.tif");
    if (named == nullptr &&
        !RepeatTiles(TestDataFolder() + "/wsi/CMU-1-Small-Region.svs", 8, 6, path).ok()) {
      return;
    }
    auto opened = OpenImage(Folders::OfThisUser(), path);
    if (!opened.ok()) return;
    image = std::move(*opened);
    frames = CutStrips(grid(), settings.strip).front();
  }
  SpectraGrid grid() const { return GridOf(image->layout().levels[0], settings); }
};

void CountFrames(benchmark::State& state, const Subject& subject) {
  state.SetItemsProcessed(state.iterations() * FramesIn(subject.frames));
}

void DecodeAlone(benchmark::State& state) {
  Subject subject;
  if (subject.image == nullptr) return state.SkipWithError("no slide");
  const SpectraGrid grid = subject.grid();
  for (auto _ : state) {
    std::vector<SpectraUnit> units;
    for (const Box& box : CutUnits(grid, subject.frames)) units.emplace_back().box = box;
    UnitsAhead ahead(*subject.image, grid, std::move(units), {});
    UnitDecoder decoder(*subject.image, grid);
    SpectraPlanes planes(grid);
    std::vector<DamagedTile> damaged;
    while (std::unique_ptr<SpectraUnit> unit = ahead.Next()) {
      planes.Hold(unit->box);
      if (!decoder.Decode(*unit, planes, damaged).ok()) state.SkipWithError("not decoded");
      ahead.GiveBack(std::move(unit));
    }
  }
  CountFrames(state, subject);
}
BENCHMARK(DecodeAlone)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();

void MeasureAlone(benchmark::State& state) {
  const Subject subject;
  if (subject.image == nullptr) return state.SkipWithError("no slide");
  const SpectraGrid grid = subject.grid();
  const Box need = PixelsOf(grid, subject.frames);
  SpectraPlanes planes(grid);
  planes.Hold(need);
  UnitDecoder decoder(*subject.image, grid);
  std::vector<DamagedTile> damaged;
  SpectraUnit unit;
  unit.box = need;
  if (!subject.image->Fetch(0, need, unit.encoded).ok() ||
      !decoder.Decode(unit, planes, damaged).ok()) {
    return state.SkipWithError("not decoded");
  }
  auto engine = *ops::SpectralFrames::Create(subject.settings);
  for (auto _ : state) {
    ops::SpectralSums sums(subject.settings);
    if (!engine->Add(planes.View(0), subject.frames, {}, sums).ok()) {
      state.SkipWithError("not measured");
    }
  }
  CountFrames(state, subject);
}
BENCHMARK(MeasureAlone)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();

void WholeStrip(benchmark::State& state) {
  const Subject subject;
  if (subject.image == nullptr) return state.SkipWithError("no slide");
  TaskSignals signals;
  TaskContext context{Folders::OfThisUser(), ops::Table()};
  context.signals = &signals;
  context.threads = static_cast<int>(state.range(0));
  for (auto _ : state) {
    if (!MeasureStrip(context, {*subject.image, subject.settings, subject.frames, {}}).ok()) {
      state.SkipWithError("not measured");
    }
  }
  CountFrames(state, subject);
}
BENCHMARK(WholeStrip)
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace patchbay::workers

BENCHMARK_MAIN();
