// The result of an ingest's summary task, which its command reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/fields.h"

namespace patchbay::results {

/// A source that has its store.
struct IngestedStore {
  std::string name;
  std::int64_t source_index = 0;
  std::uint64_t source_bytes = 0, stored_bytes = 0;
  std::string digest, pixel_digest;
  bool already_there = false;
  std::vector<std::string> warnings;  ///< of a volume's voxels, as the store holds them

  bool operator==(const IngestedStore&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("name", &IngestedStore::name).Required(),
                    Field("source_index", &IngestedStore::source_index).Required(),
                    Field("source_bytes", &IngestedStore::source_bytes).Required(),
                    Field("stored_bytes", &IngestedStore::stored_bytes).Required(),
                    Field("digest", &IngestedStore::digest).Required(),
                    Field("pixel_digest", &IngestedStore::pixel_digest).Required(),
                    Field("already_there", &IngestedStore::already_there).Required(),
                    Field("warnings", &IngestedStore::warnings).Required());
  }
};

struct IngestSummary {
  std::vector<IngestedStore> stores;
  std::vector<std::int64_t> missing;         ///< numbers of sources without a store
  std::vector<std::int64_t> without_tissue;  ///< of slides that lack the set they should have

  static constexpr auto Fields() {
    return AsObject(Field("stores", &IngestSummary::stores).Required(),
                    Field("missing", &IngestSummary::missing).Required(),
                    Field("without_tissue", &IngestSummary::without_tissue));
  }
};

}  // namespace patchbay::results
