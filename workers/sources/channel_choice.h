// The channels of an image by name: what a store calls them, and which of them a run asks for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// The names of `channels` channels in the attributes of a store: Patchbay's own, else the labels
/// of NGFF's `omero`. Empty where they are not as many, not all different or no names, and where
/// they are red, green and blue.
std::vector<std::string> StoredChannelNames(const Json& attributes, int channels);

/// Names that say no more than the number of each channel ("channel 0", "1") as none.
std::vector<std::string> WithoutNumbered(std::vector<std::string> names);

/// The place of each of `names` among the channels of the image; empty for no names. Colours of
/// uint8 are red, green and blue. InvalidArgument, naming the key and the names that the image has.
StatusOr<std::vector<int>> ChooseChannels(const std::vector<std::string>& names,
                                          const ImageLayout& layout);

/// ImageSource::Decode of the chosen channels, EncodedPatch::channels, also of an image that
/// decodes all of them, into `room` then.
Status DecodeChosen(const ImageSource& image, const EncodedPatch& patch, const TensorView& out,
                    double fill, DecodeScratch& scratch, std::vector<std::byte>& room);

}  // namespace patchbay::workers
