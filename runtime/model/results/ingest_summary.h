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
  std::vector<std::string> warnings;  ///< about a volume's voxels, a slide's stains

  bool operator==(const IngestedStore&) const = default;
  static constexpr auto Fields() {
    using T = IngestedStore;
    return AsFullObject(Field("name", &T::name), Field("source_index", &T::source_index),
                        Field("source_bytes", &T::source_bytes),
                        Field("stored_bytes", &T::stored_bytes), Field("digest", &T::digest),
                        Field("pixel_digest", &T::pixel_digest),
                        Field("already_there", &T::already_there), Field("warnings", &T::warnings));
  }
};

struct IngestSummary {
  std::vector<IngestedStore> stores;
  std::vector<std::int64_t> missing;         ///< numbers of sources without a store
  std::vector<std::int64_t> without_tissue;  ///< numbers of slides without the set they should have

  static constexpr auto Fields() {
    return AsObject(Field("stores", &IngestSummary::stores).Required(),
                    Field("missing", &IngestSummary::missing).Required(),
                    Field("without_tissue", &IngestSummary::without_tissue));
  }
};

}  // namespace patchbay::results
