// When a trainer counts as waiting.
#include <array>
#include <tuple>

#include <gtest/gtest.h>

#include "scheduler/state/stream_table.h"

namespace patchbay::scheduler {
namespace {

using protocol::SlotState;

/// A stream whose trainer has two slots, with the batches 7 and 8.
Stream StreamWith(SlotState first, SlotState second) {
  Stream stream;
  Trainer& trainer = stream.trainers[0];
  for (const auto& [slot, state, batch] : {std::tuple(0u, first, 7u), {1u, second, 8u}}) {
    trainer.slots[slot].state = state;
    trainer.slots[slot].at = {0, batch};
    if (state == SlotState::kFilling) trainer.filling[{0, batch}] = {};
  }
  return stream;
}

/// Time that counts as stalled out of 100 ms.
TimeMs StalledOf(Stream stream) {
  stream.LookForStall(1'000);
  stream.LookForStall(1'100);
  return stream.stalled_ms;
}

TEST(StallOfAStream, IsTimeWithoutTheBatchThatComesNext) {
  EXPECT_EQ(StalledOf(StreamWith(SlotState::kFull, SlotState::kFilling)), 0);
  EXPECT_EQ(StalledOf(StreamWith(SlotState::kFull, SlotState::kFull)), 0);
  EXPECT_EQ(StalledOf(StreamWith(SlotState::kFree, SlotState::kFull)), 0);
  EXPECT_EQ(StalledOf(StreamWith(SlotState::kFree, SlotState::kFilling)), 100);
  EXPECT_EQ(StalledOf(StreamWith(SlotState::kFilling, SlotState::kFull)), 100)
      << "the second batch does not help a trainer that waits for the first";
}

TEST(StallOfAStream, OfUnitsIsTimeWithoutAnyFullSlot) {
  Stream stream = StreamWith(SlotState::kFilling, SlotState::kFull);
  const std::array<UnitRuns::Run, 1> runs = {{{8, 2}}};
  stream.geometry.units = *UnitRuns::Of(runs, 8);
  EXPECT_EQ(StalledOf(stream), 0);
}

TEST(StallOfAStream, IsNoneOfATrainerThatIsSilentOrHasNoSlot) {
  Stream stream = StreamWith(SlotState::kFree, SlotState::kFilling);
  stream.trainers[0].state = TrainerState::kSuspended;
  EXPECT_EQ(StalledOf(stream), 0);
  stream.trainers[0] = {};
  EXPECT_EQ(StalledOf(stream), 0);
}

}  // namespace
}  // namespace patchbay::scheduler
