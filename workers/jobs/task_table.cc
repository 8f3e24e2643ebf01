#include "workers/jobs/task_table.h"

#include <exception>
#include <new>

#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/ingest/ingest_publish.h"
#include "workers/jobs/inspect/look_at_image.h"
#include "workers/jobs/labels/labels.h"
#include "workers/jobs/noop.h"
#include "workers/jobs/plan/plan_tasks.h"
#include "workers/jobs/preview/preview.h"
#include "workers/jobs/scan/scan.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/spectra/spectra_staging.h"
#include "workers/jobs/synth/synth.h"

namespace patchbay::workers {
namespace {

/// Returns the outcome of a task of a staged job, or a replacement for it.
using TaskEnd = StatusOr<TaskOutput> (*)(TaskContext& context, StatusOr<TaskOutput> output);

struct TaskRow {
  std::string_view name;
  TaskFunction function;
  TaskEnd end = nullptr;
  bool plans = false;  ///< part of a stream's planning
};

/// Sorted by name.
constexpr TaskRow kTasks[] = {
    {"ingest.check", RunIngestCheck, UnlessPublished},
    {"ingest.clean", RunIngestClean},
    {"ingest.finalise", RunIngestFinalise},
    {"ingest.join", RunIngestJoin, UnlessPublished},
    {"ingest.open", RunIngestOpen},
    {"ingest.plan", RunIngestPlan},
    {"ingest.shard", RunIngestShard, UnlessPublished},
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
    {"spectra.name", RunSpectraName, LeaveSpectraFailure},
    {"spectra.open", RunSpectraOpen, LeaveSpectraFailure},
    {"spectra.plan", RunSpectraPlan},
    {"spectra.slide", RunSpectraSlide, LeaveSpectraFailure},
    {"spectra.strip", RunSpectraStrip, LeaveSpectraFailure},
    {"spectra.summary", RunSpectraSummary},
    {"stream.join", RunStreamJoin, nullptr, true},
    {"stream.open", RunStreamOpen, nullptr, true},
    {"stream.plan", RunStreamPlan, nullptr, true},
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
  return InvalidArgument("run task: ", op,
                         ": a stream's tasks plan it, and this op does not: submit it as a ",
                         "job of its own kind");
}

std::vector<std::string> TaskNames() {
  std::vector<std::string> names;
  for (const TaskRow& row : kTasks) names.emplace_back(row.name);
  return names;
}

StatusOr<TaskOutput> RunTask(std::string_view op, TaskContext& context) {
  const TaskRow* row = FindRow(op);
  if (row == nullptr) {
    const std::string nearest = Nearest(op, TaskNames());
    return Unimplemented("run task: ", op, ": no such op",
                         nearest.empty() ? std::string() : StrCat(", did you mean ", nearest, "?"));
  }
  try {
    StatusOr<TaskOutput> output = row->function(context);
    if (row->end != nullptr) output = row->end(context, std::move(output));
    if (output.ok() && output->result.size() > protocol::kMaxResultBytes) {
      return Internal("run task: ", op, ": its result of ", output->result.size(),
                      " bytes is too large to send");
    }
    return output;
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("run task: ", op, ": out of memory");
  } catch (const std::exception& error) {
    return Internal("run task: ", op, ": ", error.what());
  }
}

}  // namespace patchbay::workers
