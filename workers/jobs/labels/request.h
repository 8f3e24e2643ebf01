// The checked request of a labels import.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/plan/class_table.h"
#include "workers/jobs/labels/origin.h"
#include "workers/jobs/labels/readers.h"
#include "workers/jobs/labels/tissue.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

struct LabelsRequest {
  std::string set;
  std::optional<TissueProfile> tissue;  ///< there are no annotations: tissue is looked for
  std::vector<std::string> readers;     ///< not empty: there are none: the majority of these sets
  VoteRule votes;                       ///< how the readers' votes count
  plan::ClassTable classes;
  bool dry_run = false;
  bool clip = false;                   ///< labels outside a volume may be lost, however many
  Origin origin = Origin::kByFormat;   ///< origin of the annotations' coordinates
  std::string class_from;              ///< LabelsImportOptions::class_from
  std::vector<LabelRow> rows;          ///< paths as they were named
  std::size_t row = 0;                 ///< the task's
  std::string pseudonym_key;           ///< JobManifest::pseudonym_key
  std::optional<std::uint64_t> slide;  ///< slide of the ingest that made the one store
};

/// InvalidArgument for anything the command would not send. The classes of readers are their
/// store's, so none are set.
StatusOr<LabelsRequest> LabelsRequestOf(const TaskContext& context);

}  // namespace patchbay::workers
