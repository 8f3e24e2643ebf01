#include "workers/plots/spectra_plots.h"

#include <utility>

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
  for (const auto& [name, draw] : kPictures) {
    PB_ASSIGN_OR_RETURN(std::string png, draw(document).Png());
    files.push_back({name, std::move(png)});
  }
  return files;
}

}  // namespace patchbay::workers
