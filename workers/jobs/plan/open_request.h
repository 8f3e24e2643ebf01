// The payload of stream.open: the images of the list to open, and the config's requirements for
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/model/jobs/stream_request.h"
#include "runtime/model/plan/image_volumes.h"
#include "runtime/model/plan/run_config.h"
#include "runtime/model/resolution/magnification.h"
#include "runtime/model/resolution/volume_spacing.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// The payload of stream.plan and stream.join.
struct PlanRequest {
  plan::RunConfig config;  ///< with numerics
  plan::StreamStart start;
};

/// InvalidArgument naming the key.
StatusOr<PlanRequest> ParsePlanRequest(const plan::OpTable& ops, Json payload);

struct OpenRequest {
  std::uint64_t first = 0, count = 0;  ///< range of the list
  std::uint64_t level = 0;
  std::vector<std::string> channels = {};  ///< names; empty: all
  std::optional<plan::Magnification> magnification = {};
  std::optional<plan::WantedSpacing> spacing = {};
  std::string stain = {};        ///< key of stain_normalize; empty without it
  Json stain_options = nullptr;  ///< its options
  bool icc = false;              ///< the config has icc_to_srgb
  plan::VolumeNeeds volume = {};
  plan::OnBadImage on_bad_image = plan::OnBadImage::kFail;
  std::vector<std::string> label_sets = {};  ///< LabelsConfig::Sets
  Json config = nullptr;  ///< ToJson of the RunConfig, where sampling needs places

  static constexpr auto Fields() {
    return AsObject(
        Field("first", &OpenRequest::first), Field("count", &OpenRequest::count),
        Field("level", &OpenRequest::level), Field("channels", &OpenRequest::channels),
        Field("magnification", &OpenRequest::magnification),
        Field("spacing", &OpenRequest::spacing), Field("stain", &OpenRequest::stain),
        Field("stain_options", &OpenRequest::stain_options), Field("icc", &OpenRequest::icc),
        Field("volume", &OpenRequest::volume), Field("on_bad_image", &OpenRequest::on_bad_image),
        Field("label_sets", &OpenRequest::label_sets), Field("config", &OpenRequest::config));
  }
};

}  // namespace patchbay::workers
