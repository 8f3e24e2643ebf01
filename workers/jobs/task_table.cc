#include "workers/jobs/task_table.h"

#include <exception>
#include <new>

#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/inspect/look_at_image.h"
#include "workers/jobs/labels/labels.h"
#include "workers/jobs/noop.h"
#include "workers/jobs/plan/stream_plan.h"
#include "workers/jobs/preview/preview.h"
#include "workers/jobs/scan/scan.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/synth/synth.h"

namespace patchbay::workers {
namespace {

struct TaskRow {
  std::string_view name;
  TaskFunction function;
  bool plans = false;  ///< part of a stream's planning
};

/// Sorted by name.
constexpr TaskRow kTasks[] = {
    {"ingest.check", RunIngestCheck},
    {"ingest.clean", RunIngestClean},
    {"ingest.finalise", RunIngestFinalise},
    {"ingest.join", RunIngestJoin},
    {"ingest.open", RunIngestOpen},
    {"ingest.plan", RunIngestPlan},
    {"ingest.shard", RunIngestShard},
    {"ingest.summary", RunIngestSummary},
    {"ingest.volume", RunIngestVolume},
    {"inspect", RunInspect},
    {"labels.export", RunLabelsExport},
    {"labels.import", RunLabelsImport},
    {"labels.plan", RunLabelsPlan},
    {"labels.prune", RunLabelsPrune},
    {"lock.images", RunLockImages},
    {"noop", RunNoop},
    {"preview.images", RunPreviewImages},
    {"preview.patches", RunPreviewPatches},
    {"scan", RunScan},
    {"spectra.clean", RunSpectraClean},
    {"spectra.name", RunSpectraName},
    {"spectra.open", RunSpectraOpen},
    {"spectra.plan", RunSpectraPlan},
    {"spectra.slide", RunSpectraSlide},
    {"spectra.strip", RunSpectraStrip},
    {"spectra.summary", RunSpectraSummary},
    {"stream.join", RunStreamJoin, true},
    {"stream.open", RunStreamOpen, true},
    {"stream.plan", RunStreamPlan, true},
    {"synth.ct", RunSynthCt},
    {"synth.slide", RunSynthSlide},
    {"synth.volume", RunSynthVolume},
    {"verify", RunVerify},
};

const TaskRow* FindRow(std::string_view op) {
  for (const TaskRow& row : kTasks) {
    if (row.name == op) return &row;
  }
  return nullptr;
}

}  // namespace

TaskFunction FindTask(std::string_view op) {
  const TaskRow* row = FindRow(op);
  return row == nullptr ? nullptr : row->function;
}

Status CheckPlans(std::string_view op) {
  const TaskRow* row = FindRow(op);
  if (row == nullptr || row->plans) return absl::OkStatus();  // RunTask names what it may be
  return absl::InvalidArgumentError(
      StrCat("run task: ", op, ": a stream's tasks plan it, and this op does not: submit it as a ",
             "job of its own kind"));
}

std::vector<std::string> TaskNames() {
  std::vector<std::string> names;
  for (const TaskRow& row : kTasks) names.emplace_back(row.name);
  return names;
}

StatusOr<TaskOutput> RunTask(std::string_view op, TaskContext& context) {
  const TaskFunction function = FindTask(op);
  if (function == nullptr) {
    const std::string nearest = Nearest(op, TaskNames());
    return absl::UnimplementedError(
        StrCat("run task: ", op, ": no such op",
               nearest.empty() ? std::string() : StrCat(", did you mean ", nearest, "?")));
  }
  try {
    StatusOr<TaskOutput> output = function(context);
    if (output.ok() && output->result.size() > protocol::kMaxResultBytes) {
      return absl::InternalError(StrCat("run task: ", op, ": its result of ", output->result.size(),
                                        " bytes is too large to send"));
    }
    return output;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(StrCat("run task: ", op, ": out of memory"));
  } catch (const std::exception& error) {
    return absl::InternalError(StrCat("run task: ", op, ": ", error.what()));
  }
}

}  // namespace patchbay::workers
