#include "workers/jobs/task_table.h"

#include <algorithm>
#include <exception>
#include <new>

#include "workers/jobs/convert/convert.h"
#include "workers/jobs/ingest/ingest.h"
#include "workers/jobs/labels/labels.h"
#include "workers/jobs/plan/plan_tasks.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/task/single_tasks.h"

namespace patchbay::workers {
namespace {

/// An op, or all ops of a staged job.
struct TaskRow {
  std::string_view name = {};
  TaskFunction function = nullptr;
  bool plans = false;  ///< part of a stream's planning
  const StagedJob* job = nullptr;
};

constexpr TaskRow kTasks[] = {
    {"ingest.measure", RunIngestMeasure},
    {"inspect", RunInspect},
    {"labels.compare", RunLabelsCompare},
    {"labels.delete", RunLabelsDelete},
    {"labels.export", RunLabelsExport},
    {"labels.prune", RunLabelsPrune},
    {"lock.images", RunLockImages},
    {"noop", RunNoop},
    {"preview.images", RunPreviewImages},
    {"preview.patches", RunPreviewPatches},
    {"scan", RunScan},
    {"stream.join", RunStreamJoin, true},
    {"stream.open", RunStreamOpen, true},
    {"stream.plan", RunStreamPlan, true},
    {"synth.ct", RunSynthCt},
    {"synth.slide", RunSynthSlide},
    {"synth.volume", RunSynthVolume},
    {"verify", RunVerify},
    {.job = &kConvertJob},
    {.job = &kIngestJob},
    {.job = &kLabelsJob},
    {.job = &kSpectraJob},
};

std::vector<std::string> OpsOf(const TaskRow& row) {
  return row.job == nullptr ? std::vector{std::string(row.name)} : row.job->Ops();
}

const TaskRow* FindRow(std::string_view op) {
  for (const TaskRow& row : kTasks) {
    const std::vector<std::string> ops = OpsOf(row);
    if (std::find(ops.begin(), ops.end(), op) != ops.end()) return &row;
  }
  return nullptr;
}

}  // namespace

bool HasTask(std::string_view op) { return FindRow(op) != nullptr; }

Status CheckPlans(std::string_view op) {
  const TaskRow* row = FindRow(op);
  if (row == nullptr || row->plans) return absl::OkStatus();  // RunTask names what it may be
  return InvalidArgument("run task: ", op,
                         ": a stream's tasks plan it, and this op does not: submit it as a ",
                         "job of its own kind");
}

std::vector<std::string> TaskNames() {
  std::vector<std::string> names;
  for (const TaskRow& row : kTasks) {
    const std::vector<std::string> ops = OpsOf(row);
    names.insert(names.end(), ops.begin(), ops.end());
  }
  std::sort(names.begin(), names.end());
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
    StatusOr<TaskOutput> output =
        row->job == nullptr ? row->function(context) : row->job->Run(op, context);
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
