// patchbay spectra-diff A.json B.json: how far two results of `patchbay spectra` agree. Needs no
// cluster.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/cli/commands.h"
#include "runtime/cli/jobs/spectra_comparison.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxSlidesShown = 10;

class SpectraDiffCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"A.json", "", "the reference spectra.json", &a_, true},
            {"B.json", "", "the spectra.json to compare", &b_, true},
            {"--force", "", "compare even if definitions differ, where histograms allow", &force_}};
  }
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  std::string a_, b_;
  bool force_ = false;
};

/// Enough digits that a difference shows: "0.0000 dB", "1.2e-07 dB".
std::string Small(double value, const char* unit) {
  const bool tiny = value != 0 && std::fabs(value) < 5e-5;
  if (!tiny) return StrCat(Fixed(value, 4), " ", unit);
  char text[32];
  std::snprintf(text, sizeof(text), "%.1e", value);
  return StrCat(text, " ", unit);
}

std::string PercentText(const FigurePair& pair) {
  const std::optional<double> percent = pair.Percent();
  return percent.has_value() ? Small(*percent, "%") : "-";
}

void SayCohort(Terminal& terminal, const SpectraDifference& cohort) {
  std::vector<std::vector<std::string>> rows = {{"cohort", "A", "B", "B - A", "of A"}};
  const auto row = [&](const char* name, const FigurePair& pair) {
    rows.push_back({name, Fixed(pair.a, 4) + " dB", Fixed(pair.b, 4) + " dB",
                    Small(pair.Difference(), "dB"), PercentText(pair)});
  };
  row("mean", cohort.mean_db);
  row("standard deviation", cohort.std_db);
  rows.push_back({"frames", StrCat(cohort.frames_a), StrCat(cohort.frames_b),
                  StrCat(cohort.frames_b - cohort.frames_a), ""});
  for (const std::string& line : FormatTable(rows, {false, true, true, true, true})) {
    terminal.Say(line);
  }
  terminal.Say(StrCat("distribution: L1 ", Small(cohort.histogram_l1, "of 2"), ", total variation ",
                      Small(cohort.histogram_l1 * 50, "%"), ", largest quantile gap ",
                      Small(cohort.quantile_gap_db, "dB"),
                      cohort.quantile_gap_db > 0
                          ? StrCat(" at ", Fixed(cohort.quantile_gap_percent, 1), " %")
                          : std::string()));
}

/// The slides that differ most in their means.
void SaySlides(Terminal& terminal, const SpectraComparison& comparison) {
  std::vector<const SlideDifference*> worst;
  std::size_t identical = 0;
  for (const SlideDifference& slide : comparison.slides) {
    identical += slide.difference.identical ? 1 : 0;
    if (!slide.difference.identical) worst.push_back(&slide);
  }
  terminal.Say(StrCat("slides: ", comparison.slides.size(), " in both, ", identical,
                      " of them identical; ", comparison.only_a.size(), " only in A, ",
                      comparison.only_b.size(), " only in B"));
  std::stable_sort(worst.begin(), worst.end(),
                   [](const SlideDifference* x, const SlideDifference* y) {
                     return std::fabs(x->difference.mean_db.Difference()) >
                            std::fabs(y->difference.mean_db.Difference());
                   });
  if (worst.empty()) return;
  std::vector<std::vector<std::string>> rows = {
      {"slide", "mean A", "mean B", "B - A", "of A", "std B - A", "of A", "L1"}};
  for (std::size_t i = 0; i < std::min(worst.size(), kMaxSlidesShown); ++i) {
    const SpectraDifference& d = worst[i]->difference;
    rows.push_back({worst[i]->id, Fixed(d.mean_db.a, 4), Fixed(d.mean_db.b, 4),
                    Small(d.mean_db.Difference(), "dB"), PercentText(d.mean_db),
                    Small(d.std_db.Difference(), "dB"), PercentText(d.std_db),
                    Small(d.histogram_l1, "")});
  }
  for (const std::string& line :
       FormatTable(rows, {false, true, true, true, true, true, true, true})) {
    terminal.Say(line);
  }
  if (worst.size() > kMaxSlidesShown) {
    terminal.Say(StrCat("... and ", worst.size() - kMaxSlidesShown, " more; --json has all"));
  }
}

StatusOr<ExitCode> SpectraDiffCommand::Run(Session& session) {
  PB_ASSIGN_OR_RETURN(const results::SpectraDocument a,
                      results::ReadSpectraDocument(Folders::OfThisUser(), a_));
  PB_ASSIGN_OR_RETURN(const results::SpectraDocument b,
                      results::ReadSpectraDocument(Folders::OfThisUser(), b_));
  PB_ASSIGN_OR_RETURN(const SpectraComparison comparison, CompareSpectra(a, b, force_));
  Terminal& terminal = session.terminal;
  for (const std::string& remark : comparison.remarks) terminal.Note("note: " + remark);
  SayCohort(terminal, comparison.cohort);
  SaySlides(terminal, comparison);
  const bool within = comparison.cohort.WithinStudy();
  if (comparison.cohort.identical) terminal.Say("the cohorts are identical");
  terminal.Say(StrCat(within ? "within" : "NOT within", " the study's ",
                      Fixed(kStudyMeanPercent, 1), " % of the mean and ",
                      Fixed(kStudyStdPercent, 1), " % of the standard deviation"));
  terminal.Result(ToJson(comparison));
  return within ? ExitCode::kDone : ExitCode::kFailed;
}

}  // namespace

const char kSpectraDiffNote[] =
    "Exit code 0: mean and standard deviation of the cohorts agree as the published study's did,\n"
    "within 0.5 % and 1.8 %; 1: they do not, or the two cannot be compared.\n";

std::unique_ptr<Command> MakeSpectraDiff() { return std::make_unique<SpectraDiffCommand>(); }

}  // namespace patchbay::cli
