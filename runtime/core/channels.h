// How many channels an image may have, wherever it is stored, planned or transformed.
#pragma once

namespace patchbay {

inline constexpr int kMaxChannels = 64;

}  // namespace patchbay
