// The study's architectures and the floor of the parts, one a run: one JSON object on stdout.
//
//   spectra_rivals a|b|b+|floor SLIDE [--cores N] [--strip ROWS] [--reader openslide|own]
//   spectra_rivals crop SLIDE ROWS FILE
//   spectra_rivals repeat SLIDE ACROSS DOWN FILE      its tiles so many times over
//   spectra_rivals size SLIDE
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "tests/bench/spectra/rivals.h"
#include "tests/bench/spectra/slide_rows.h"
#include "tests/workers/sources/slide_fixtures.h"

namespace patchbay::bench {
namespace {

StatusOr<RivalOptions> ParseOptions(const std::vector<std::string>& words) {
  RivalOptions options;
  options.slide = words[1];
  options.reads_ahead = words[0] == "b+";
  options.strip_rows = options.reads_ahead ? 1024 : 256;
  for (std::size_t i = 2; i + 1 < words.size(); i += 2) {
    if (words[i] == "--cores") {
      options.cores = std::max(1, std::atoi(words[i + 1].c_str()));
    } else if (words[i] == "--strip") {
      options.strip_rows = std::atol(words[i + 1].c_str()) / kHop * kHop;
    } else if (words[i] == "--reader") {
      options.own_reader = words[i + 1] == "own";
    } else {
      return absl::InvalidArgumentError(StrCat("unknown option ", words[i]));
    }
  }
  if (options.strip_rows < kHop) return absl::InvalidArgumentError("--strip: at least a hop");
  return options;
}

StatusOr<Json> Run(const std::vector<std::string>& words) {
  if (words.size() == 4 && words[0] == "crop") {
    PB_RETURN_IF_ERROR(CropSlide(words[1], std::atol(words[2].c_str()), words[3]));
    return Json::object();
  }
  if (words.size() == 5 && words[0] == "repeat") {
    PB_RETURN_IF_ERROR(workers::RepeatTiles(words[1], std::atoi(words[2].c_str()),
                                            std::atoi(words[3].c_str()), words[4]));
    return Json::object();
  }
  if (words.size() == 2 && words[0] == "size") {
    PB_ASSIGN_OR_RETURN(const auto rows, SlideRows::Open(words[1], true));
    return Json{{"size", {rows->width(), rows->height()}}};
  }
  if (words.size() < 2) return absl::InvalidArgumentError("usage: see the head of this file");
  PB_ASSIGN_OR_RETURN(const RivalOptions options, ParseOptions(words));
  if (words[0] == "floor") {
    PB_ASSIGN_OR_RETURN(const FloorTimes t, MeasureFloor(options));
    return Json{{"frames", t.frames},
                {"decode_us", t.decode_s * 1e6},
                {"fft_us", t.fft_s * 1e6},
                {"statistics_us", t.statistics_s * 1e6},
                {"op_us", t.op_s * 1e6}};
  }
  PB_ASSIGN_OR_RETURN(const Outcome o,
                      words[0] == "a" ? RunArchitectureA(options) : RunArchitectureB(options));
  return Json{{"frames", o.frames},
              {"sum_db", o.sum_db},
              {"squares_db", o.squares_db},
              {"counts", o.counts},
              {"copied_bytes", o.copied_bytes}};
}

int Main(int argc, char** argv) {
  const StatusOr<Json> result = Run(std::vector<std::string>(argv + 1, argv + argc));
  if (!result.ok()) {
    std::cerr << Describe(result.status()) << "\n";
    return 1;
  }
  std::cout << DumpJson(*result) << "\n";
  return 0;
}

}  // namespace
}  // namespace patchbay::bench

int main(int argc, char** argv) { return patchbay::bench::Main(argc, argv); }
