// The channels of a patch as the store of their image describes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/ops/volume_facts.h"
#include "runtime/model/plan/image_volumes.h"
#include "runtime/model/results/image_facts.h"
#include "runtime/model/source/modality.h"
#include "runtime/os/folders.h"
#include "workers/jobs/plan/open_image.h"

namespace patchbay::workers {

/// Names and modalities of the chosen channels (ChooseChannels; none: all); empty where the image
/// has one channel, or its channels have no names. `modality`, if set, is that of all of them.
std::vector<results::ChannelFacts> ChannelFactsOf(const OpenedImage& opened,
                                                  const std::vector<int>& chosen,
                                                  const std::optional<Modality>& modality);

/// Adds the numbers of each of the chosen channels (none: all) to the facts; `path` is the store's.
/// Errors are those of NumbersOf.
Status AddNumbers(const Folders& allowed, const OpenedImage& opened, const std::string& path,
                  const std::vector<int>& chosen, const plan::VolumeNeeds& needs,
                  plan::VolumeFacts& facts);

}  // namespace patchbay::workers
