// The labels folder of a store, locked while one task changes it.
#pragma once

#include <string>
#include <utility>

#include "runtime/os/file.h"
#include "runtime/os/folders.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

class LabelsFolder {
 public:
  /// Makes the folder, waits for another task to release it, and removes leftovers of a killed one.
  /// Unavailable when that takes too long.
  static StatusOr<LabelsFolder> Open(TaskContext& context, const std::string& store);
  LabelsFolder(LabelsFolder&&) = default;
  LabelsFolder& operator=(LabelsFolder&&) = default;
  /// Removes staged files, and the folder if it is empty.
  ~LabelsFolder();

  std::string Staging() const;
  std::string Of(const std::string& revision) const;

 private:
  explicit LabelsFolder(Folders allowed) : allowed_(std::move(allowed)) {}
  Status Clear() const;

  Folders allowed_;
  std::string path_;
  UniqueFd fd_;
};

}  // namespace patchbay::workers
