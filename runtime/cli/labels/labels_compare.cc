// patchbay labels compare SET... --in STORE: how far the label sets of several readers agree.
#include <algorithm>
#include <optional>
#include <set>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/labels/labels_job.h"
#include "runtime/cli/skipped_files.h"
#include "runtime/cli/worker_run.h"
#include "runtime/core/counted.h"
#include "runtime/core/names.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/csv/csv.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/results/label_agreement.h"

namespace patchbay::cli {
namespace {

using results::Agreement;
using results::PairCounts;
using results::StoreAgreement;

constexpr auto kWeights = NamesInOrder<results::KappaWeights>("none", "linear", "quadratic");
constexpr char kAll[] = "all";

struct ComparedStore {
  std::string store;  ///< kAll: the sum of them
  StoreAgreement counts;
};

std::string TextOf(const std::optional<double>& value) { return value ? Fixed(*value, 4) : "-"; }
Json JsonOfMeasure(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

class LabelsCompareCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    Argument weights{"--weights", "",
                     "how kappa counts confusions: alike, or by distance of classes", &weights_};
    weights.choices = {kWeights.list.begin(), kWeights.list.end()};
    return WithOptions(
        {{"SET", "", "the label sets to compare, each a reader's", &sets_, true},
         {"--in", "STORE|COHORT", "stores, folders of them, or a table of slides; repeatable",
          &paths_, true},
         {"--stores", "DIR", "folder of the stores of a table's rows", &stores_},
         weights,
         {"--csv", "", "write rows as CSV", &csv_}},
        options_);
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    if (csv_ && session.terminal.json()) return UsageError("--csv and --json exclude each other");
    PB_RETURN_IF_ERROR(CheckCompared(sets_, paths_, stores_));
    PB_ASSIGN_OR_RETURN(const LabelRows rows, StoreRowsOf(paths_, stores_));
    std::vector<ComparedStore> compared;
    ComparedStore all{kAll, {}};
    Json failed = Json::array();
    for (const LabelRow& row : rows.rows) {
      StatusOr<StoreAgreement> counts = CompareIn(row.store);
      if (absl::IsCancelled(counts.status())) return counts.status();
      if (counts.ok()) {
        PB_RETURN_IF_ERROR(results::AddAgreement(*counts, all.counts));
        compared.push_back({row.store, *std::move(counts)});
        continue;
      }
      session.terminal.Note(StrCat(row.store, ": ", MessageOf(counts.status())));
      failed.push_back({{"store", row.store}, {"reason", MessageOf(counts.status())}});
    }
    PrintSkipped(session.terminal, rows.skipped_files);
    if (!compared.empty()) Report(session.terminal, compared, all, failed);
    if (failed.empty()) return ExitCode::kDone;
    return compared.empty() ? ExitCode::kFailed : ExitCode::kSomeFailed;
  }

 private:
  StatusOr<StoreAgreement> CompareIn(const std::string& store) const {
    Json payload = PayloadOf(options_);
    payload["sets"] = sets_;
    PB_ASSIGN_OR_RETURN(const Json result, RunWorkerOp("labels.compare", payload,
                                                       JsonOf(JobManifest{.images = {store}})));
    return FromJson<StoreAgreement>(result, "labels compare");
  }

  Agreement MeasureOf(const StoreAgreement& counts, const PairCounts& pair) const {
    return results::AgreementOf(pair.pixels, counts.classes.size(), *kWeights.Find(weights_));
  }

  void Report(Terminal& terminal, const std::vector<ComparedStore>& compared,
              const ComparedStore& all, const Json& failed) const {
    std::vector<std::vector<std::string>> table = {
        {"store", "a", "b", "pixels", "agreement", "kappa"}};
    if (csv_) {
      for (const char* more : {"only_a", "only_b"}) table[0].emplace_back(more);
      for (const std::string& name : all.counts.classes) table[0].push_back("dice " + name);
    }
    Json stores = Json::array();
    for (const ComparedStore& one : compared) {
      AddRows(one, all.counts.classes, table);
      stores.push_back(JsonOfStore(one));
    }
    AddRows(all, all.counts.classes, table);
    if (csv_) {
      std::string text;
      for (const auto& row : table) text += CsvRow(row);
      text.pop_back();  // the terminal ends the last line
      terminal.SayText(text);
    } else {
      for (const std::string& line : FormatTable(table, {false, false, false, true, true, true})) {
        terminal.Say(line);
      }
      SayClasses(terminal, all.counts);
    }
    Json result = JsonOfStore(all);
    result.erase("store");
    result["sets"] = sets_;
    result["weights"] = weights_;
    result["stores"] = std::move(stores);
    result["failed"] = failed;
    terminal.Result(result);
  }

  /// A row for each pair; in a CSV with all that was counted.
  void AddRows(const ComparedStore& one, const std::vector<std::string>& classes,
               std::vector<std::vector<std::string>>& table) const {
    for (const PairCounts& pair : one.counts.pairs) {
      const Agreement measure = MeasureOf(one.counts, pair);
      const auto number = [this](const std::optional<double>& value) {
        return !csv_ ? TextOf(value) : value ? Fixed(*value, 9) : "";
      };
      std::vector<std::string>& row = table.emplace_back();
      for (const std::string& text : {one.store, sets_[pair.a], sets_[pair.b]}) {
        row.push_back(csv_ ? CsvField(text) : text);
      }
      row.push_back(StrCat(measure.pixels));
      row.push_back(number(measure.share));
      row.push_back(number(measure.kappa));
      if (!csv_) continue;
      row.push_back(StrCat(pair.only_a));
      row.push_back(StrCat(pair.only_b));
      for (const std::string& name : classes) {
        const auto& own = one.counts.classes;
        const auto found = std::find(own.begin(), own.end(), name);
        const auto at = static_cast<std::size_t>(found - own.begin());
        row.push_back(found == own.end() ? "" : number(measure.dice[at]));
      }
    }
  }

  Json JsonOfStore(const ComparedStore& one) const {
    Json pairs = Json::array();
    const std::vector<std::string>& classes = one.counts.classes;
    for (const PairCounts& pair : one.counts.pairs) {
      const Agreement measure = MeasureOf(one.counts, pair);
      Json dice = Json::object(), confusion = Json::array();
      for (std::size_t i = 0; i < classes.size(); ++i) {
        dice[classes[i]] = JsonOfMeasure(measure.dice[i]);
        const auto row = pair.pixels.begin() + static_cast<std::ptrdiff_t>(i * classes.size());
        confusion.push_back(std::vector(row, row + static_cast<std::ptrdiff_t>(classes.size())));
      }
      pairs.push_back({{"a", sets_[pair.a]},
                       {"b", sets_[pair.b]},
                       {"pixels", measure.pixels},
                       {"only_a", pair.only_a},
                       {"only_b", pair.only_b},
                       {"agreement", JsonOfMeasure(measure.share)},
                       {"kappa", JsonOfMeasure(measure.kappa)},
                       {"dice", dice},
                       {"confusion", confusion}});
    }
    return {{"store", one.store}, {"classes", classes}, {"pairs", pairs}};
  }

  /// Dice of each class, and of each pair where its pixels are, over all stores.
  void SayClasses(Terminal& terminal, const StoreAgreement& all) const {
    for (const PairCounts& pair : all.pairs) {
      const Agreement measure = MeasureOf(all, pair);
      terminal.Say("");
      terminal.Say(StrCat(sets_[pair.a], " (rows) and ", sets_[pair.b], " (columns), ",
                          Counted(measure.pixels, "pixel"), " of both; ", pair.only_a,
                          " only in the first, ", pair.only_b, " only in the second"));
      std::vector<std::vector<std::string>> table = {{"class", "dice"}};
      std::vector<bool> right = {false, true};
      for (const std::string& name : all.classes) {
        table[0].push_back(name);
        right.push_back(true);
      }
      for (std::size_t i = 0; i < all.classes.size(); ++i) {
        std::vector<std::string>& row = table.emplace_back();
        row = {all.classes[i], TextOf(measure.dice[i])};
        for (std::size_t k = 0; k < all.classes.size(); ++k) {
          row.push_back(StrCat(pair.pixels[i * all.classes.size() + k]));
        }
      }
      for (const std::string& line : FormatTable(table, right)) terminal.Say(line);
    }
  }

  std::vector<std::string> sets_, paths_;
  std::string stores_, weights_ = "none";
  LabelsCompareOptions options_;
  bool csv_ = false;
};

}  // namespace

Status CheckCompared(const std::vector<std::string>& sets, const std::vector<std::string>& paths,
                     const std::string& stores) {
  const bool has_table = std::any_of(paths.begin(), paths.end(), plan::NamesTable);
  if (!has_table && !stores.empty()) return UsageError("--stores goes with a table of slides");
  for (const std::string& set : sets) {
    if (zarr::IsSetName(set)) continue;
    return UsageError(StrCat("'", set, "': ", zarr::kSetNameRule));
  }
  if (std::set<std::string>(sets.begin(), sets.end()).size() != sets.size()) {
    return UsageError("SET: a label set is named twice");
  }
  if (sets.size() >= 2 && sets.size() <= results::kMaxComparedSets) return absl::OkStatus();
  return UsageError(StrCat("SET: name 2 to ", results::kMaxComparedSets, " label sets"));
}

const char kLabelsCompareNote[] =
    "Of each pair of sets: the pixels to which both give a class, the share of them that have the\n"
    "same in both, and Cohen's kappa, for each store and over all; Dice of each class, and the\n"
    "confusion of the classes. Classes are the same by name. Exit code 1: no store was compared;\n"
    "3: some were not.\n";

std::unique_ptr<Command> MakeLabelsCompare() { return std::make_unique<LabelsCompareCommand>(); }

}  // namespace patchbay::cli
