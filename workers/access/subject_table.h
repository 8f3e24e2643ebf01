// The things behind paths. An error of a worker goes through the scheduler and into its journal,
// and paths may name patients: it leaves with numbers.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/outcome.h"
#include "runtime/format/json/json.h"

namespace patchbay::workers {

/// Paths, and the subjects that they are. A value.
class SubjectTable {
 public:
  /// One file or store; names below it are the format's and stay. The first subject of a path
  /// holds. Relative paths are passed over.
  void Add(const std::string& path, const Subject& subject);
  /// A folder that people named, and the target of its links: names below it are theirs too and
  /// become "...".
  void AddFolder(const std::string& path, const Subject& subject);
  /// The paths of a job's manifest as it was submitted: stores for `images`, files for `sources`,
  /// the run for `out`.
  void AddManifest(const Json& manifest);

  /// The path of a subject, for an error that does not travel; "" where it is in no row.
  std::string PathOf(const Subject& subject) const;

  /// A failed status as it may travel: subjects by number. A path that is in no row is "a file",
  /// unless it is one of the system's. Texts that hold a known path, as those of libraries do, get
  /// its subject in its place.
  Status Settle(const Status& status) const;

 private:
  struct Row {
    std::string path;
    Subject subject;
    bool hides_rest = false;
  };
  void Add(std::string path, const Subject& subject, bool hides_rest);
  Status SettleInOrder(const Status& status) const;  ///< with the longest path first
  Subject SubjectOf(const Row& row, std::string_view rest) const;
  Subject Settled(const Subject& subject) const;
  std::string Settled(std::string_view text, std::vector<Subject>& old_others,
                      std::vector<Subject>& others) const;
  void SplitAtPath(Outcome& outcome) const;
  const Row* RowAt(std::string_view text) const;

  std::vector<Row> rows_;
};

}  // namespace patchbay::workers
