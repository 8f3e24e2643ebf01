#include "workers/stream/pipeline.h"

#include <algorithm>
#include <future>
#include <utility>

#include "runtime/core/clock.h"
#include "runtime/core/outcome.h"

namespace patchbay::workers {
namespace {

Status Refused(const protocol::ShardLease& lease, std::string_view why) {
  return InvalidArgument("take shard: ", lease.shard.ToString(), ": ", why);
}

/// The status of a patch, with no code by which a trainer says that an attempt is void: made again,
/// the patch would fail again.
Status NotVoid(const Status& status) {
  if (!absl::IsFailedPrecondition(status) && !absl::IsAlreadyExists(status)) return status;
  patchbay::Outcome outcome = OutcomeOf(status);
  outcome.code = static_cast<std::int32_t>(absl::StatusCode::kDataLoss);
  return StatusOf(outcome);
}

Status CheckLease(const StreamContext& context, const protocol::ShardLease& lease) {
  if (lease.stream != context.stream()) return Refused(lease, "of another stream");
  const Grant& grant = lease.grant;
  if (grant.count == 0) return Refused(lease, "no patches");
  const std::uint32_t capacity = Capacity(context.geometry());
  if (grant.count > capacity || grant.place > capacity - grant.count) {
    return Refused(lease, StrCat("a grant of ", grant.count, " patches from ", grant.place,
                                 " on, in a slot of ", capacity));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Pipeline>> Pipeline::Start(const PipelineOptions& options,
                                                    Delivery& delivery, PatchMakerFactory makers,
                                                    ShardEnded ended) {
  PB_CHECK(options.compute_threads > 0 && options.fetched_patches_max > 0);
  std::unique_ptr<Pipeline> pipeline(new Pipeline(options, delivery, std::move(ended)));
  Pipeline* self = pipeline.get();
  const PatchEnded patch_ended = [self](PatchPtr patch, const Status& status) {
    self->OnPatchEnded(std::move(patch), status);
  };
  for (int i = 0; i < options.compute_threads; ++i) {
    std::promise<Status> started;
    std::future<Status> start = started.get_future();
    self->compute_threads_.emplace_back([self, &makers, &patch_ended, &started] {
      StatusOr<std::unique_ptr<PatchMaker>> maker = makers(patch_ended);
      const bool usable = maker.ok();
      started.set_value(maker.status());
      if (usable) self->ComputeLoop(**maker);
    });
    PB_RETURN_IF_ERROR(start.get());
  }
  self->read_thread_ = std::thread([self] { self->ReadLoop(); });
  self->deliver_thread_ = std::thread([self] { self->DeliverLoop(); });
  return pipeline;
}

Pipeline::Pipeline(const PipelineOptions& options, Delivery& delivery, ShardEnded ended)
    : options_(options),
      delivery_(delivery),
      ended_(std::move(ended)),
      waiting_(options.shards_max),
      free_patches_(options.fetched_patches_max),
      fetched_(options.fetched_patches_max),
      finished_(options.shards_max) {
  for (std::size_t i = 0; i < options.fetched_patches_max; ++i) {
    free_patches_.Push(std::make_unique<FetchedPatch>());
  }
}

Pipeline::~Pipeline() {
  {
    const std::lock_guard lock(held_mu_);
    for (auto& [lease, work] : held_) work->Revoke();
  }
  waiting_.Close();
  if (read_thread_.joinable()) read_thread_.join();
  fetched_.Close();
  for (std::thread& thread : compute_threads_) thread.join();
  finished_.Close();
  if (deliver_thread_.joinable()) deliver_thread_.join();
}

Status Pipeline::Submit(std::shared_ptr<StreamContext> context, const protocol::ShardLease& lease) {
  PB_RETURN_IF_ERROR(CheckLease(*context, lease));
  WorkPtr work = std::make_shared<ShardWork>(std::move(context), lease);
  const std::lock_guard lock(held_mu_);
  if (held_.size() >= options_.shards_max) {
    return ResourceExhausted("take shard: ", lease.shard.ToString(), ": ", held_.size(),
                             " are held already");
  }
  if (!held_.emplace(lease.lease, work).second) return Refused(lease, "its lease is held already");
  PB_CHECK(waiting_.TryPush(work));
  return absl::OkStatus();
}

void Pipeline::Revoke(const LeaseNumber& lease) {
  const std::lock_guard lock(held_mu_);
  const auto it = held_.find(lease);
  if (it != held_.end()) it->second->Revoke();
}

std::uint64_t Pipeline::ProgressOf(const LeaseNumber& lease) const {
  const std::lock_guard lock(held_mu_);
  const auto it = held_.find(lease);
  const std::uint64_t own = it == held_.end() ? 0 : it->second->progress.load();
  return own != 0 ? own : steps_.load(std::memory_order_relaxed);
}

std::size_t Pipeline::shards_held() const {
  const std::lock_guard lock(held_mu_);
  return held_.size();
}

void Pipeline::ReadLoop() {
  while (std::optional<WorkPtr> work = waiting_.Pop()) ReadShard(*work);
}

void Pipeline::ReadShard(const WorkPtr& work) {
  // From its start on, a shard's progress is its own, continuing from where it waited.
  work->progress.store(steps_ + 1);
  Status status = work->Outcome();
  if (status.ok()) {
    StatusOr<std::unique_ptr<ShardWindow>> window = delivery_.Open(work->context(), work->lease());
    status = window.status();
    if (window.ok()) work->window = *std::move(window);
  }
  if (!status.ok()) return End(work, status);
  for (std::uint32_t i = 0; i < work->lease().grant.count; ++i) {
    PatchPtr patch = TakeBuffer();
    patch->work = work;
    patch->is_second_read = false;
    const Status read = work->Wanted() ? Read(work, i, *patch) : absl::OkStatus();
    if (!read.ok() || !work->Wanted()) {
      OnPatchEnded(std::move(patch), read);
    } else {
      // Another thread may end the shard from then on.
      if (i + 1 == work->lease().grant.count) work->spent.Charge(TakeSpent());
      fetched_.Push(std::move(patch));
    }
  }
}

AfterPiece Pipeline::CountStep(ShardWork& work) {
  return [this, of = &work]() -> Status {
    steps_.fetch_add(1, std::memory_order_relaxed);
    of->progress.fetch_add(1, std::memory_order_relaxed);
    return of->Wanted() ? absl::OkStatus() : Cancelled("read patch: not wanted");
  };
}

Status Pipeline::Read(const WorkPtr& work, std::uint32_t index, FetchedPatch& patch) {
  const std::int64_t begun_ns = SteadyNowNs();
  const Status read = ReadPatch(work, index, CountStep(*work), patch);
  patch.held_bytes = patch.BufferBytes();
  held_bytes_ += patch.held_bytes;
  work->spent.storage_ns += SteadyNowNs() - begun_ns;
  return read;
}

/// Takes a buffer to read into. Waits while the buffers that were read hold too much memory; idle
/// buffers hold none.
Pipeline::PatchPtr Pipeline::TakeBuffer() {
  PatchPtr patch = *free_patches_.Pop();
  std::vector<PatchPtr> idle;
  while (held_bytes_ >= options_.fetched_bytes_max &&
         idle.size() + 1 < options_.fetched_patches_max) {
    idle.push_back(std::move(patch));
    patch = *free_patches_.Pop();
  }
  for (PatchPtr& one : idle) free_patches_.Push(std::move(one));
  return patch;
}

/// Idle buffers keep their memory as long as all of them together may.
void Pipeline::GiveBack(PatchPtr patch) {
  patch->CloseImages();
  held_bytes_ -= std::exchange(patch->held_bytes, 0);
  if (patch->BufferBytes() > options_.fetched_bytes_max / options_.fetched_patches_max) {
    patch->FreeBuffers();
  }
  free_patches_.Push(std::move(patch));
}

/// The thread's costs are charged to a shard when it ends, or the patches of another one follow.
void Pipeline::ComputeLoop(PatchMaker& maker) {
  std::vector<PatchPtr> ready;
  std::weak_ptr<ShardWork> before;
  while (TakeReady(maker, ready)) {
    if (const WorkPtr of = before.lock(); of != ready.front()->work) {
      const ThreadSpent spent = TakeSpent();
      if (of != nullptr) of->spent.Charge(spent);
      before = ready.front()->work;
    }
    maker.Make(ready);
  }
}

/// Takes fetched patches, up to the thread's share of them.
bool Pipeline::TakeReady(PatchMaker& maker, std::vector<PatchPtr>& ready) {
  ready.clear();
  std::optional<PatchPtr> patch = fetched_.TryPop();
  if (!patch) {
    maker.Flush();
    patch = fetched_.Pop();
  }
  const std::size_t share =
      1 + fetched_.size() / static_cast<std::size_t>(options_.compute_threads);
  const std::size_t most = std::min(share, maker.patches_at_once());
  for (; patch; patch = fetched_.TryPop()) {
    ready.push_back(*std::move(patch));
    if (ready.size() >= most) break;
  }
  return !ready.empty();
}

/// Runs once for a patch of damaged bytes. The bytes come from files that have been open for a
/// while, and other files may be at their paths by now: a repaired store keeps its name. Files that
/// changed while open are read again only if their present content is the planned one.
Status Pipeline::ReadAgain(FetchedPatch& patch, const Status& failed) {
  const WorkPtr& work = patch.work;
  if (!work->Wanted()) return failed;
  StreamContext& context = work->context();
  if (absl::IsAborted(failed)) {
    PB_RETURN_IF_ERROR(context.CheckContent(patch.spec.image, failed, CountStep(*work)));
  }
  if (patch.is_second_read) return failed;
  context.Forget(patch.spec.image, patch.image.get());
  for (std::size_t set = 0; set < patch.labels.size(); ++set) {
    context.ForgetLabels(patch.spec.image, set, patch.labels[set].source.get());
  }
  held_bytes_ -= std::exchange(patch.held_bytes, 0);
  patch.is_second_read = true;
  return Read(work, patch.index, patch);
}

void Pipeline::OnPatchEnded(PatchPtr patch, const Status& status) {
  Status ended = status;
  if (absl::IsDataLoss(status) || absl::IsAborted(status)) {
    ended = ReadAgain(*patch, status);
    if (ended.ok() && fetched_.TryPush(patch)) return;
    // Damage that is still there is told as it was found first.
    if (ended.ok()) ended = status;
  }
  const WorkPtr work = std::exchange(patch->work, nullptr);
  const Status outcome = work->context().WithImage(NotVoid(ended), patch->spec.image);
  GiveBack(std::move(patch));
  steps_.fetch_add(1, std::memory_order_relaxed);
  work->progress.fetch_add(1, std::memory_order_relaxed);
  if (work->EndPatch(outcome)) OnLastPatch(work);
}

void Pipeline::OnLastPatch(const WorkPtr& work) {
  const Status outcome = work->Outcome();
  if (!outcome.ok()) return End(work, outcome);
  if (!work->window->DeliverBlocks()) return DeliverShard(work);
  work->spent.Charge(TakeSpent());
  PB_CHECK(finished_.Push(work));
}

void Pipeline::DeliverLoop() {
  while (std::optional<WorkPtr> work = finished_.Pop()) DeliverShard(*work);
}

void Pipeline::DeliverShard(const WorkPtr& work) {
  if (work->revoked()) return End(work, work->Outcome());
  const std::int64_t begun_ns = SteadyNowNs();
  const Status delivered = work->window->Deliver(work->spent.Times());
  if (work->window->DeliverBlocks()) work->spent.transfer_ns = SteadyNowNs() - begun_ns;
  End(work, delivered);
}

void Pipeline::End(const WorkPtr& work, const Status& status) {
  work->window = nullptr;
  {
    const std::lock_guard lock(held_mu_);
    held_.erase(work->lease().lease);
  }
  const protocol::ShardLease& lease = work->lease();
  const std::size_t patch_bytes = status.ok() ? work->context().layout().PatchBytes() : 0;
  work->spent.Charge(TakeSpent());
  ended_(lease, status, work->spent.Spent(lease.grant.count * patch_bytes));
}

}  // namespace patchbay::workers
