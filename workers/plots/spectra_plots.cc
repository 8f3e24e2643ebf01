#include "workers/plots/spectra_plots.h"

#include <future>
#include <utility>

#include "runtime/os/work_meter.h"

namespace patchbay::workers {
namespace {

constexpr std::array<std::pair<const char*, Drawing (*)(const results::SpectraDocument&)>, 3>
    kPictures = {{{"histogram.png", &DrawHistogram},
                  {"radial.png", &DrawRadial},
                  {"cohort.png", &DrawCohort}}};

}  // namespace

StatusOr<std::vector<PlotFile>> DrawSpectraPlots(const results::SpectraDocument& document) {
  std::vector<PlotFile> files;
  if (!document.cohort.has_value()) return files;
  // Each beside the others: at a job's end the other cores have nothing left to do.
  std::vector<std::future<StatusOr<std::string>>> drawn;
  for (const auto& [name, draw] : kPictures) {
    drawn.push_back(std::async(std::launch::async | std::launch::deferred,
                               Metered([&document, draw] { return draw(document).Png(); })));
  }
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    PB_ASSIGN_OR_RETURN(std::string png, drawn[i].get());
    files.push_back({kPictures[i].first, std::move(png)});
  }
  return files;
}

}  // namespace patchbay::workers
