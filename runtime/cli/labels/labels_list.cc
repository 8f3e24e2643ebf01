// patchbay labels list and labels show: the label sets of stores, by their metadata.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "runtime/cli/commands.h"
#include "runtime/cli/labels/labels_job.h"
#include "runtime/cli/skipped_files.h"
#include "runtime/client/paths.h"
#include "runtime/core/counted.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/plan/class_table.h"

namespace patchbay::cli {
namespace {

/// A class of a set, and the pixels or voxels of the source's size that are of it.
struct ClassCount {
  std::string name;
  std::int64_t value = 0;
  std::uint64_t pixels = 0;

  static constexpr auto Fields() {
    using T = ClassCount;
    return AsFullObject(Field("name", &T::name), Field("value", &T::value),
                        Field("pixels", &T::pixels));
  }
};

/// A set's current revision.
struct SetReport {
  std::string store, set;
  std::string revision;  ///< digest
  std::string from;      ///< "geojson", "tissue"; "" where the revision does not say
  std::vector<ClassCount> classes;
  std::vector<std::string> older;  ///< folders of revisions that are not current

  static constexpr auto Fields() {
    using T = SetReport;
    return AsFullObject(Field("store", &T::store), Field("set", &T::set),
                        Field("revision", &T::revision), Field("from", &T::from),
                        Field("classes", &T::classes), Field("older", &T::older));
  }
};

StatusOr<std::vector<ClassCount>> ClassesOf(const zarr::OpenedLabelSet& opened) {
  PB_ASSIGN_OR_RETURN(
      const plan::ClassTable table,
      plan::ClassTableFromJson(opened.attributes.value("classes", Json()), opened.path));
  const Json pixels = opened.attributes.value("pixels", Json());
  std::vector<ClassCount> classes;
  for (const plan::LabelClass& one : table.classes) {
    if (one.value == plan::kIgnoreClass) continue;
    ClassCount& row = classes.emplace_back(ClassCount{one.name, one.value});
    const auto found = pixels.find(one.name);
    if (found == pixels.end()) continue;
    PB_ASSIGN_OR_RETURN(row.pixels, FromJson<std::uint64_t>(*found, opened.path));
  }
  return classes;
}

StatusOr<SetReport> ReportOf(const std::string& store, const std::string& set,
                             const zarr::LabelFolders& folders) {
  PB_ASSIGN_OR_RETURN(const auto opened, zarr::OpenLabelSet(Folders::OfThisUser(), store, set));
  SetReport report;
  report.store = store;
  report.set = set;
  report.revision = opened.digest.Hex();
  const Json from = opened.attributes.value("format", Json());
  if (from.is_string()) report.from = from.get<std::string>();
  PB_ASSIGN_OR_RETURN(report.classes, ClassesOf(opened));
  const std::string current = zarr::RevisionName(set, opened.digest);
  for (const std::string& revision : folders.revisions) {
    const bool is_of_set = revision.substr(0, revision.rfind('.')) == set;
    if (is_of_set && revision != current) report.older.push_back(revision);
  }
  return report;
}

Status CheckIsStore(const std::string& store) {
  if (zarr::IsStore(Folders::OfThisUser(), store)) return absl::OkStatus();
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "labels", store, "not a store");
}

std::uint64_t LabelledPixels(const std::vector<ClassCount>& classes) {
  return std::accumulate(classes.begin(), classes.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& one) { return sum + one.pixels; });
}

/// "37.9 %"; "-" of nothing.
std::string Share(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return StrCat(Fixed(100.0 * static_cast<double>(part) / static_cast<double>(whole), 1), " %");
}

/// "background 62.1 %, tissue 37.9 %": the classes that occur.
std::string TextOfClasses(const std::vector<ClassCount>& classes) {
  std::vector<std::string> parts;
  for (const ClassCount& one : classes) {
    if (one.pixels == 0) continue;
    parts.push_back(StrCat(one.name, " ", Share(one.pixels, LabelledPixels(classes))));
  }
  return parts.empty() ? "nothing" : StrJoin(parts, ", ");
}

class LabelsListCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"STORE|COHORT", "", "stores, folders of them, or a table of slides", &paths_, true},
            {"--stores", "DIR", "folder of the stores of a table's rows", &stores_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(const LabelRows rows, StoreRowsOf(paths_, stores_));
    std::vector<SetReport> sets;
    std::size_t without = 0;
    for (const LabelRow& row : rows.rows) {
      const std::size_t before = sets.size();
      PB_RETURN_IF_ERROR(AddSetsOf(row.store, sets));
      if (sets.size() == before) ++without;
    }
    PrintSkipped(session.terminal, rows.skipped_files);
    Say(session.terminal, sets, rows.rows.size(), without);
    session.terminal.Result(
        {{"sets", JsonOf(sets)}, {"stores", rows.rows.size()}, {"without", without}});
    return ExitCode::kDone;
  }

 private:
  static Status AddSetsOf(const std::string& store, std::vector<SetReport>& sets) {
    PB_RETURN_IF_ERROR(CheckIsStore(store));
    PB_ASSIGN_OR_RETURN(const auto names, zarr::ReadLabelSets(Folders::OfThisUser(), store));
    PB_ASSIGN_OR_RETURN(const auto folders, zarr::ListLabelFolders(Folders::OfThisUser(), store));
    for (const zarr::LabelSet& one : names) {
      PB_ASSIGN_OR_RETURN(sets.emplace_back(), ReportOf(store, one.name, folders));
    }
    return absl::OkStatus();
  }

  static void Say(Terminal& terminal, const std::vector<SetReport>& sets, std::size_t stores,
                  std::size_t without) {
    std::vector<std::vector<std::string>> table = {{"store", "set", "from", "older", "classes"}};
    for (const SetReport& one : sets) {
      table.push_back(
          {one.store, one.set, one.from, StrCat(one.older.size()), TextOfClasses(one.classes)});
    }
    if (!sets.empty()) {
      for (const std::string& line : FormatTable(table, {false, false, false, true, false})) {
        terminal.Say(line);
      }
    }
    terminal.Say(StrCat(Counted(sets.size(), "label set"), " in ", Counted(stores, "store"),
                        without == 0 ? "" : StrCat("; ", without, " without labels")));
  }

  std::vector<std::string> paths_;
  std::string stores_;
};

class LabelsShowCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"STORE", "", "a store with label sets", &store_, true},
            {"--set", "NAME", "the label set", &set_, true}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(const std::string store, client::AbsolutePath(store_));
    PB_RETURN_IF_ERROR(CheckIsStore(store));
    PB_ASSIGN_OR_RETURN(const auto folders, zarr::ListLabelFolders(Folders::OfThisUser(), store));
    PB_ASSIGN_OR_RETURN(const SetReport report, ReportOf(store, set_, folders));
    Terminal& terminal = session.terminal;
    terminal.Say(StrCat("set       ", report.set));
    terminal.Say(StrCat("revision  ", report.revision));
    terminal.Say(StrCat("from      ", report.from.empty() ? "unknown" : report.from));
    for (const std::string& revision : report.older) {
      terminal.Say(StrCat("older     ", revision));
    }
    std::vector<std::vector<std::string>> table = {{"value", "class", "pixels", "of labelled"}};
    for (const ClassCount& one : report.classes) {
      table.push_back({StrCat(one.value), one.name, StrCat(one.pixels),
                       Share(one.pixels, LabelledPixels(report.classes))});
    }
    for (const std::string& line : FormatTable(table, {true, false, true, true})) {
      terminal.Say(line);
    }
    terminal.Result(JsonOf(report));
    return ExitCode::kDone;
  }

 private:
  std::string store_, set_;
};

}  // namespace

std::unique_ptr<Command> MakeLabelsList() { return std::make_unique<LabelsListCommand>(); }
std::unique_ptr<Command> MakeLabelsShow() { return std::make_unique<LabelsShowCommand>(); }

}  // namespace patchbay::cli
