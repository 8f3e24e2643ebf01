#include "runtime/model/stream/position.h"

namespace patchbay {

Position NextPosition(const StreamGeometry& geometry, Position at) {
  if (at.batch + 1 < BatchesPerEpoch(geometry)) return {at.epoch, at.batch + 1};
  return {at.epoch + 1, 0};
}

Position SkipEmpty(const StreamGeometry& geometry, std::uint32_t rank, Position at) {
  if (at.batch >= BatchesPerEpoch(geometry)) at = {at.epoch + 1, 0};
  if (RankRun(geometry, at.batch, rank).count == 0) at = NextPosition(geometry, at);
  return at;
}

}  // namespace patchbay
