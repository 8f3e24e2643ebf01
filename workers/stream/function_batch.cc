#include "workers/stream/function_batch.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "runtime/core/clock.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "workers/stream/chain_options.h"
#include "workers/stream/making_timer.h"

namespace patchbay::workers {
namespace {

using plan::FunctionStage;

/// Streams whose processes are kept.
constexpr std::size_t kMaxSessions = 4;

constexpr FunctionStage kStages[] = {FunctionStage::kPixels, FunctionStage::kValues};

FunctionStage FirstOf(const FunctionStages& stages) {
  return stages.Has(FunctionStage::kPixels) ? FunctionStage::kPixels : FunctionStage::kValues;
}

FunctionStage LastOf(const FunctionStages& stages) {
  return stages.Has(FunctionStage::kValues) ? FunctionStage::kValues : FunctionStage::kPixels;
}

/// The inputs of a patch's ops, and the lookup that they refer to.
struct Inputs {
  std::shared_ptr<const ops::IccLookup> icc;
  FunctionStages::PatchInput of_patch;
};

StatusOr<Inputs> InputsOf(const FetchedPatch& patch) {
  StreamContext& context = patch.work->context();
  const std::uint32_t image = patch.spec.image;
  Inputs inputs;
  PB_ASSIGN_OR_RETURN(inputs.icc, context.ToSrgb(image));
  inputs.of_patch = {patch.spec.key, ColoursOf(context.plan().images()[image], inputs.icc.get()),
                     context.plan().FactsOf(image)};
  return inputs;
}

/// While a function works on them: the patches' leases live, and somebody wants one of them.
WhileWaiting StillWanted(std::span<const std::unique_ptr<FetchedPatch>> patches) {
  return [patches]() -> Status {
    bool is_wanted = false;
    for (const auto& patch : patches) {
      patch->work->progress.fetch_add(1, std::memory_order_relaxed);
      is_wanted = is_wanted || patch->work->Wanted();
    }
    return is_wanted ? absl::OkStatus() : Cancelled("own function: not wanted");
  };
}

/// The function's failure at one patch, which ends the run. Where its process was killed, the shard
/// is tried elsewhere.
Status AtPatch(const FetchedPatch& patch, const Status& failed) {
  if (failed.ok()) return failed;
  const DrawKey& key = patch.spec.key;
  const bool is_killed = absl::IsResourceExhausted(failed);
  return About(is_killed ? failed : WithCode(failed, absl::StatusCode::kInvalidArgument),
               StrCat("make patch ", key.ordinal, " of epoch ", key.epoch),
               {SubjectKind::kImage, patch.spec.image, ""});
}

}  // namespace

Status FunctionBatch::Select(const FetchedPatch& patch) {
  const std::shared_ptr<StreamContext>& context = patch.work->shared_context();
  const bool is_same = !taken_.empty() && sessions_.back().context == context &&
                       taken_.front()->spec.key.epoch == patch.spec.key.epoch &&
                       taken_.size() < sessions_.back().session->capacity();
  if (is_same) return absl::OkStatus();
  Flush();
  const auto found =
      std::find_if(sessions_.begin(), sessions_.end(),
                   [&context](const OpenSession& open) { return open.context == context; });
  if (found != sessions_.end()) {
    std::rotate(found, found + 1, sessions_.end());
    return absl::OkStatus();
  }
  PB_ASSIGN_OR_RETURN(auto session, FunctionSession::Open(policy_, *context));
  if (sessions_.size() >= kMaxSessions) sessions_.erase(sessions_.begin());
  sessions_.push_back({context, std::move(session)});
  return absl::OkStatus();
}

void FunctionBatch::Add(PatchPtr patch) {
  Status status = Select(*patch);
  if (status.ok()) {
    const MakingTimer timer(decoder_, patch->work->spent);
    status = Begin(*patch, taken_.size());
    timer.Stop();
  }
  if (!status.ok()) return ended_(std::move(patch), status);
  taken_.push_back(std::move(patch));
  if (taken_.size() == sessions_.back().session->capacity()) Flush();
}

Status FunctionBatch::Begin(const FetchedPatch& patch, std::size_t place) {
  const StreamContext& context = patch.work->context();
  const FunctionStages& stages = context.functions();
  const FunctionSession& session = *sessions_.back().session;
  if (context.has_labels()) {
    PB_RETURN_IF_ERROR(labels_.Make(patch, decoder_));
    const auto mask = std::as_bytes(labels_.mask());
    std::copy(mask.begin(), mask.end(), session.Mask(place).begin());
  }
  const FunctionStage first = FirstOf(stages);
  const std::span<std::byte> array = session.Place(first, place);
  if (stages.CanMakeInPlace(first, patch.spec.key)) {
    PB_RETURN_IF_ERROR(decoder_.Decode(patch, kImageArray, array));
    stages.MakeInPlace(patch.spec.key, array, scratch_);
    return absl::OkStatus();
  }
  tile_.resize(TileDecoder::TileBytes(context, patch.spec));
  PB_RETURN_IF_ERROR(decoder_.Decode(patch, kImageArray, tile_));
  PB_ASSIGN_OR_RETURN(const Inputs inputs, InputsOf(patch));
  return stages.Make(first, TileDecoder::TileView(context, patch.spec, tile_), inputs.of_patch,
                     array, scratch_);
}

Status FunctionBatch::RunStage(FunctionStage stage, std::span<const PatchPtr> patches) {
  const FunctionStages& stages = patches.front()->work->context().functions();
  FunctionSession& session = *sessions_.back().session;
  CallKey key{patches.front()->spec.key.seed, patches.front()->spec.key.epoch, {}};
  for (std::size_t i = 0; i < patches.size(); ++i) {
    key.ordinals.push_back(patches[i]->spec.key.ordinal);
    if (stage == FirstOf(stages)) continue;
    PB_ASSIGN_OR_RETURN(const Inputs inputs, InputsOf(*patches[i]));
    const auto before = session.Place(FunctionStage::kPixels, i);
    PB_RETURN_IF_ERROR(stages.Make(stage, stages.View(FunctionStage::kPixels, before),
                                   inputs.of_patch, session.Place(stage, i), scratch_));
  }
  return session.Run(stage, key, StillWanted(patches));
}

Status FunctionBatch::Deliver(const FetchedPatch& patch, std::size_t place) {
  if (!patch.work->Wanted()) return absl::OkStatus();
  const StreamContext& context = patch.work->context();
  const FunctionStages& stages = context.functions();
  const FunctionSession& session = *sessions_.back().session;
  WriteMetaArrays(patch);
  if (context.has_labels()) {
    labels_.Take(patch, session.Mask(place));
    WriteMadeLabels(patch, labels_);
  } else {
    PB_RETURN_IF_ERROR(WriteLabelArrays(patch, decoder_, labels_));
  }
  PB_ASSIGN_OR_RETURN(const Inputs inputs, InputsOf(patch));
  const FunctionStage last = LastOf(stages);
  return stages.Finish(stages.View(last, session.Place(last, place)), inputs.of_patch,
                       HostPlaceOf(patch, kImageArray), scratch_);
}

Status FunctionBatch::Finish(std::span<const PatchPtr> patches) {
  const FunctionStages& stages = patches.front()->work->context().functions();
  for (const FunctionStage stage : kStages) {
    if (stages.Has(stage)) PB_RETURN_IF_ERROR(RunStage(stage, patches));
  }
  for (std::size_t i = 0; i < patches.size(); ++i) PB_RETURN_IF_ERROR(Deliver(*patches[i], i));
  return absl::OkStatus();
}

/// Makes each patch again by itself, since together they failed, and the arrays hold anything. A
/// process that ends at one of them has had a second chance. One patch of a shard may fail.
std::vector<Status> FunctionBatch::FinishAlone(std::span<const PatchPtr> patches) {
  std::vector<Status> outcomes;
  std::set<const ShardWork*> failed;
  for (const PatchPtr& patch : patches) {
    Status status = absl::OkStatus();
    if (patch->work->Wanted() && !failed.contains(patch->work.get())) {
      status = Begin(*patch, 0);
      if (status.ok()) status = AtPatch(*patch, Finish({&patch, 1}));
    }
    if (!status.ok()) failed.insert(patch->work.get());
    outcomes.push_back(absl::IsCancelled(status) ? absl::OkStatus() : status);
  }
  return outcomes;
}

void FunctionBatch::Flush() {
  if (taken_.empty()) return;
  const FunctionSession& session = *sessions_.back().session;
  const std::int64_t begun_ns = SteadyNowNs(), cpu_before_ns = session.cpu_ns();
  std::vector<PatchPtr> patches = std::exchange(taken_, {});
  const Status together = Finish(patches);
  std::vector<Status> outcomes(patches.size());
  const bool is_settled = patches.size() == 1 && absl::IsInvalidArgument(together);
  if (is_settled) {
    outcomes[0] = AtPatch(*patches[0], together);
  } else if (!together.ok() && !absl::IsCancelled(together)) {
    outcomes = FinishAlone(patches);
  }
  const auto parts = static_cast<std::int64_t>(patches.size());
  const std::int64_t cpu_ns = session.cpu_ns() - cpu_before_ns;
  const std::int64_t spent_ns = SteadyNowNs() - begun_ns;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    patches[i]->work->spent.cpu_ns += cpu_ns / parts;
    patches[i]->work->spent.transform_ns += spent_ns / parts;
    ended_(std::move(patches[i]), outcomes[i]);
  }
}

}  // namespace patchbay::workers
