// Several label sets of one slide, as its readers drew them, and what most of them say.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/format/json/json.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/plan/class_table.h"
#include "workers/jobs/labels/label_raster.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// The names of a payload's `sets`. InvalidArgument unless they are 2 to kMaxComparedSets different
/// names of sets.
StatusOr<std::vector<std::string>> ReadersOf(const Json& payload, std::string_view what);

struct Readers {
  std::vector<zarr::OpenedLabelSet> sets;  ///< current revisions, in the order named
  plan::ClassTable classes;                ///< common to them all
};
/// InvalidArgument for sets of different classes or values; NotFound for a set that the store does
/// not have.
StatusOr<Readers> OpenReaders(const Folders& allowed, const std::string& store,
                              const std::vector<std::string>& names);

/// How votes become a class: LabelsMajorityOptions.
struct VoteRule {
  bool first_wins = false;      ///< a tie goes to the first set named; otherwise it is ignored
  std::size_t least_votes = 1;  ///< pixels whose winner has fewer are ignored
};

/// The class that most of the sets give each pixel; those that give none have no vote.
StatusOr<std::unique_ptr<LabelRaster>> DrawMajority(const Folders& allowed,
                                                    const RasterRequest& request,
                                                    const Readers& readers, const VoteRule& rule);

}  // namespace patchbay::workers
