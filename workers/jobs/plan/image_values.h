// Statistics of an image's values, from the counts that `ingest` and `labels import` left.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/plan/class_histograms.h"
#include "runtime/model/plan/image_volumes.h"
#include "runtime/model/results/image_facts.h"
#include "runtime/model/source/modality.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// The numbers that zscore or percentile goes by; `needs.values` is set.
struct NormalisingNumbers {
  double mean = 0;  ///< or the lower percentile
  double std = 1;   ///< or the way from it to the upper one
};

/// A channel of a store, for its numbers.
struct CountedChannel {
  std::string path;  ///< the store's
  /// Attributes.patchbay of a store of one channel, else the channel's member of its `channels`.
  const Json& recorded;
  DType dtype = DType::kInt16;
  std::string name = {};  ///< set for one of several channels
  std::size_t index = 0;  ///< its place among the store's
};

/// By the counts of the channel. InvalidArgument, with the way out, where they are missing or do
/// not suffice.
StatusOr<NormalisingNumbers> NumbersOf(const Folders& allowed, const CountedChannel& channel,
                                       const plan::VolumeNeeds& needs);

/// The histograms of a revision under a channel, as its metadata names them. InvalidArgument for a
/// set without.
StatusOr<plan::ClassHistograms> ClassHistogramsOf(const Folders& allowed,
                                                  const zarr::OpenedLabelSet& set,
                                                  const std::string& name, std::size_t channel = 0);

/// InvalidArgument, with the way out, unless a volume of the modality has Hounsfield units, for
/// what takes its values for such. `of`: whose modality it is.
Status CheckHu(const std::optional<Modality>& modality,
               std::string_view asks = "it takes Hounsfield units",
               std::string_view of = "the volume's modality");
/// CheckHu of every channel of an image, by name; of the image where it has none.
Status CheckAllHu(const std::optional<Modality>& modality,
                  const std::vector<results::ChannelFacts>& channels,
                  std::string_view asks = "it takes Hounsfield units");

}  // namespace patchbay::workers
