// patchbay labels prune and labels delete: old revisions of label sets, and whole sets, taken out
// of stores.
#include <algorithm>
#include <set>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/labels/labels_job.h"
#include "runtime/cli/skipped_files.h"
#include "runtime/cli/worker_run.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/plan/run_lock.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

/// The folders of all revisions that the locks name.
StatusOr<std::vector<std::string>> RevisionsOf(const std::vector<std::string>& locks) {
  std::set<std::string> revisions;
  for (const std::string& path : locks) {
    PB_ASSIGN_OR_RETURN(const std::string text,
                        ReadFile(Folders::OfThisUser(), path, plan::kMaxLockBytes));
    PB_ASSIGN_OR_RETURN(const plan::RunLock lock, plan::ParseRunLock(text, path));
    for (const plan::LockedImage& image : lock.images) {
      for (const auto& [set, digest] : image.sets) {
        revisions.insert(zarr::RevisionName(set, digest));
      }
    }
  }
  return std::vector(revisions.begin(), revisions.end());
}

/// `Options`: LabelsPruneOptions or LabelsDeleteOptions, the payload of `op`.
template <typename Options>
class PruneCommand final : public Command {
 public:
  PruneCommand(const char* name, const char* op) : name_(name), op_(op) {}

  std::vector<Argument> Arguments() override {
    return WithOptions(
        {{"STORE|COHORT", "", "stores, folders of them, or a table of slides", &paths_, true},
         {"--stores", "DIR", "folder of the stores of a table's rows", &stores_},
         {"--lock", "RUN.lock", "keep the revisions of this lock; repeatable", &locks_},
         {"--no-lock", "", "says that no run is locked to these stores", &no_lock_}},
        options_);
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    if (locks_.empty() && !no_lock_ && !options_.dry_run) {
      return UsageError(
          StrCat(name_, ": give the locks whose revisions stay (--lock RUN.lock), or --no-lock"));
    }
    if (!locks_.empty() && no_lock_) return UsageError("--lock and --no-lock exclude each other");
    const bool has_table = std::any_of(paths_.begin(), paths_.end(), plan::NamesTable);
    if (!has_table && !stores_.empty()) return UsageError("--stores goes with a table of slides");
    if (!options_.set.empty() && !zarr::IsSetName(options_.set)) {
      return UsageError(StrCat("--set: '", options_.set, "' is not a name of a label set"));
    }
    JobManifest manifest;
    PB_ASSIGN_OR_RETURN(manifest.kept, RevisionsOf(locks_));
    PB_ASSIGN_OR_RETURN(const LabelRows rows, StoreRowsOf(paths_, stores_));
    for (const LabelRow& row : rows.rows) manifest.images.push_back(row.store);
    PB_ASSIGN_OR_RETURN(const Json result, RunWorkerOp(op_, PayloadOf(options_), JsonOf(manifest)));
    PB_ASSIGN_OR_RETURN(const auto stores,
                        FromJson<std::vector<PrunedStore>>(result, "pruned stores"));
    return Report(session.terminal, stores, rows.skipped_files);
  }

 private:
  ExitCode Report(Terminal& terminal, const std::vector<PrunedStore>& stores,
                  const FilesByKind& skipped_files) const {
    PrintSkipped(terminal, skipped_files);
    std::uint64_t bytes = 0;
    std::size_t removed = 0, kept = 0;
    for (const PrunedStore& store : stores) {
      for (const std::string& revision : store.removed) {
        terminal.Say(StrCat(store.store, ": ", revision));
      }
      removed += store.removed.size();
      kept += store.kept.size();
      bytes += store.bytes;
    }
    terminal.Say(StrCat(options_.dry_run ? "would remove " : "removed ",
                        Counted(removed, "revision"), ", ", HumanBytes(bytes), "; ",
                        Counted(kept, "stays for a lock", "stay for locks")));
    terminal.Result({{"stores", JsonOf(stores)},
                     {"removed", removed},
                     {"kept", kept},
                     {"bytes", bytes},
                     {"dry_run", options_.dry_run},
                     {"skipped_files", skipped_files}});
    return ExitCode::kDone;
  }

  const char* const name_;
  const char* const op_;
  std::vector<std::string> paths_, locks_;
  std::string stores_;
  Options options_;
  bool no_lock_ = false;
};

}  // namespace

const char kLabelsPruneNote[] =
    "The current revision of a set stays, and so do those that a --lock names. A stream that runs\n"
    "on a revision that is removed ends with an error: prune when none does.\n";

const char kLabelsDeleteNote[] =
    "Removes the set with all its revisions, but for those that a --lock names. A stream that "
    "runs\n"
    "on the set ends with an error: delete when none does.\n";

std::unique_ptr<Command> MakeLabelsPrune() {
  return std::make_unique<PruneCommand<LabelsPruneOptions>>("labels prune", "labels.prune");
}

std::unique_ptr<Command> MakeLabelsDelete() {
  return std::make_unique<PruneCommand<LabelsDeleteOptions>>("labels delete", "labels.delete");
}

}  // namespace patchbay::cli
