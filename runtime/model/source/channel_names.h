// The names of the channels of a volume: of sequences, phases or tracers of one patient.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/source/modality.h"

namespace patchbay {

inline constexpr std::size_t kMaxChannelNameBytes = 64;

/// The key of attributes.patchbay: a list with one object for each channel of a volume, which has a
/// `name` and what a volume of one channel records about its values.
inline constexpr char kChannelsKey[] = "channels";

/// InvalidArgument for a name that is empty, longer than kMaxChannelNameBytes, not printable or no
/// UTF-8.
Status CheckChannelName(std::string_view name);
/// The same for all, for a name that is there twice, and for more than kMaxChannels.
Status CheckChannelNames(const std::vector<std::string>& names);

/// The modality of a channel of this name, in any case: CT, or a well-known name of MR or PET.
std::optional<Modality> ChannelModality(std::string_view name);

/// The key of an ingest's payload that says which sources are channels of one image: a list of
/// images, each a list of [name, number of the source] in the order of the channels.
inline constexpr char kChannelsOfRows[] = "channels";

/// The names that a store records in attributes.patchbay; empty where it has one channel, or does
/// not name each.
std::vector<std::string> ChannelNames(const Json& attributes);

/// The channels of a dataset.json of nnU-Net (`channel_names`, {"0": "T1"}) or MSD (`modality`), in
/// the order of their numbers; empty where neither numbers them from 0 on.
std::vector<std::string> DatasetChannels(const Json& dataset);

}  // namespace patchbay
