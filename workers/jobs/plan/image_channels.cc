#include "workers/jobs/plan/image_channels.h"

#include <cstddef>

#include "runtime/core/strings.h"
#include "workers/jobs/plan/image_values.h"

namespace patchbay::workers {
namespace {

/// The record that ingest made of channel `c`; an empty object where it did not. A store of one
/// channel has it in its own attributes.
Json RecordedOf(const OpenedImage& opened, std::size_t c) {
  if (opened.layout.channels == 1) return opened.own;
  const Json channels = opened.own.value("channels", Json());
  const bool is_of_image =
      channels.is_array() && channels.size() == static_cast<std::size_t>(opened.layout.channels);
  return is_of_image ? channels[c] : Json::object();
}

/// The places of a patch's channels among those of the image.
std::vector<std::size_t> ChannelsOf(const ImageLayout& layout, const std::vector<int>& chosen) {
  std::vector<std::size_t> channels(chosen.begin(), chosen.end());
  for (int c = 0; c < layout.channels && chosen.empty(); ++c) {
    channels.push_back(static_cast<std::size_t>(c));
  }
  return channels;
}

}  // namespace

std::vector<results::ChannelFacts> ChannelFactsOf(const OpenedImage& opened,
                                                  const std::vector<int>& chosen,
                                                  const std::optional<Modality>& modality) {
  std::vector<results::ChannelFacts> facts;
  if (opened.layout.channels == 1 || opened.layout.channel_names.empty()) return facts;
  for (const std::size_t c : ChannelsOf(opened.layout, chosen)) {
    facts.push_back({opened.layout.channel_names[c],
                     modality ? modality : RecordedModality(RecordedOf(opened, c))});
  }
  return facts;
}

Status AddNumbers(const Folders& allowed, const OpenedImage& opened, const std::string& path,
                  const std::vector<int>& chosen, const plan::VolumeNeeds& needs,
                  plan::VolumeFacts& facts) {
  const ImageLayout& layout = opened.layout;
  bool is_first = true;
  for (const std::size_t c : ChannelsOf(layout, chosen)) {
    const Json recorded = RecordedOf(opened, c);
    std::string name;
    if (layout.channels > 1) {
      name = layout.channel_names.empty() ? StrCat("channel ", c) : layout.channel_names[c];
    }
    PB_ASSIGN_OR_RETURN(const NormalisingNumbers numbers,
                        NumbersOf(allowed, {path, recorded, layout.dtype, name, c}, needs));
    if (is_first) {
      facts.mean = numbers.mean;
      facts.std = numbers.std;
    } else {
      facts.further.push_back({numbers.mean, numbers.std});
    }
    is_first = false;
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers
