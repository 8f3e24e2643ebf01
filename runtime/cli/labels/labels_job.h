// Jobs that make label sets: pairs of stores and annotation files, and a staged job without folder
// with one row of outcome a store.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "runtime/cli/jobs/slide_job.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/source/file_kind.h"

namespace patchbay::cli {

struct LabelRows {
  std::vector<LabelRow> rows = {};
  FilesByKind skipped_files = {};  ///< in folders of stores that were named
  /// Settings of tissue that a table states, and the numbers of the rows that have them.
  std::map<std::string, std::vector<std::size_t>> tissue_options = {};
};

/// The rows of the table that have an annotation: its file next to the table, its site, and the
/// store in `stores` that was made from the row's content_hash (or the row's path, if it is a
/// store). InvalidArgument or NotFound names the row: no store (ingest makes it), no such file.
StatusOr<LabelRows> LabelRowsOfTable(const std::string& table, const std::string& stores);

/// Stores in the order named, stores below folders (sorted), or those of one table's rows; each
/// once, without files and sites. NotFound for a missing path, a folder without stores, and a row
/// without one.
StatusOr<LabelRows> StoreRowsOf(const std::vector<std::string>& paths, const std::string& stores);

/// UsageError unless they are some different names of sets to compare, and `stores` goes with a
/// table among `paths`.
Status CheckCompared(const std::vector<std::string>& sets, const std::vector<std::string>& paths,
                     const std::string& stores);

/// A store and a file by their paths; NotFound when one does not exist.
StatusOr<LabelRows> LabelRowOf(const std::string& store, const std::string& file,
                               const std::string& site);

/// An output of results of `patchbay map` with a class map.
struct ResultRows {
  std::vector<LabelRow> rows;        ///< image by image: its store, and its class map
  std::vector<FailedSource> failed;  ///< class maps of images without a store
  std::string output;
  Json classes;           ///< results::ClassTableOf
  bool is_image = false;  ///< the folder of an image was named
};

/// Whether `path` names results and no store: any other folder.
bool NamesResults(const std::string& path);

/// The complete images of a folder of results, or the one of an image's folder; their stores by the
/// paths that the results record or, where no store of their pixels is there, in `stores`. `output`
/// is "" where one has a class map. NotFound where no image has a store.
StatusOr<ResultRows> LabelRowsOfResults(const std::string& path, const std::string& output,
                                        const std::string& stores);

/// The root task "labels.plan" over the rows, for RunStagedJob. `pseudonym_key`: "" where stores
/// keep nothing under it.
SlideJobRequest LabelsJobOf(const LabelRows& rows, Json payload,
                            const std::string& pseudonym_key = "");

}  // namespace patchbay::cli
