#include "workers/stream/chain_options.h"

namespace patchbay::workers {

ops::ChainOptions ChainOptionsOf(const plan::Plan& plan) {
  const plan::RunConfig& config = plan.config();
  ops::ChainOptions options;
  options.preprocess = config.preprocess;
  options.augment = config.augment;
  options.patch = config.patch;
  options.channels = plan.channels();
  options.source_dtype = plan.images().front().dtype;
  options.dtype = config.dtype;
  options.layout =
      config.layout == plan::Layout::kNchw ? ops::OutputLayout::kNchw : ops::OutputLayout::kNhwc;
  return options;
}

ops::ChainOptions LabelChainOptionsOf(const plan::Plan& plan) {
  ops::ChainOptions options = ChainOptionsOf(plan);
  for (Json* list : {&options.preprocess, &options.augment}) {
    Json kept = Json::array();
    for (const Json& step : *list) {
      const bool moves =
          step.contains("flip") || step.contains("rotate90") || step.contains("crop");
      if (moves) kept.push_back(step);
    }
    *list = std::move(kept);
  }
  options.channels = 1;
  options.source_dtype = options.dtype = DType::kUint8;
  options.layout = ops::OutputLayout::kNchw;
  return options;
}

}  // namespace patchbay::workers
