// How the time of making one patch divides between decode and transform.
#pragma once

#include <cstdint>

#include "runtime/core/clock.h"
#include "workers/stream/shard_work.h"
#include "workers/stream/tile_decoder.h"

namespace patchbay::workers {

/// Splits the time from its construction to Stop: the decoder's time is decode, the rest transform.
/// Use it on the decoder's thread; `spent` must live until Stop.
class MakingTimer {
 public:
  MakingTimer(const TileDecoder& decoder, StageClock& spent)
      : decoder_(decoder),
        spent_(spent),
        begun_ns_(SteadyNowNs()),
        decoded_before_ns_(decoder.spent_ns()) {}

  void Stop() const {
    const std::int64_t decoded_ns = decoder_.spent_ns() - decoded_before_ns_;
    spent_.decode_ns += decoded_ns;
    spent_.transform_ns += SteadyNowNs() - begun_ns_ - decoded_ns;
  }

 private:
  const TileDecoder& decoder_;
  StageClock& spent_;
  const std::int64_t begun_ns_, decoded_before_ns_;
};

}  // namespace patchbay::workers
