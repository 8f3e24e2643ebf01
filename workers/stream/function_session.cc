#include "workers/stream/function_session.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

using plan::FunctionStage;

/// Fewer than the pipeline's buffers, so that reading goes on meanwhile.
constexpr std::size_t kCallPatches = 4;
constexpr std::size_t kAlignment = 64;

std::size_t Aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Status CheckAsPlanned(const plan::OwnFunction& function, const FunctionFile& file) {
  if (file.digest.Hex() == function.sha256) return absl::OkStatus();
  return InvalidArgument("own function ", function.function,
                         ": its file changed since the stream was planned: start it anew");
}

Status CheckVersions(const plan::OwnFunction& function, const FunctionVersions& here) {
  if (here.python == function.python && here.numpy == function.numpy) return absl::OkStatus();
  return InvalidArgument("own function ", function.function, ": planned with Python ",
                         function.python, " and NumPy ", function.numpy, ", this worker has ",
                         here.python, " and ", here.numpy);
}

}  // namespace

StatusOr<std::unique_ptr<FunctionSession>> FunctionSession::Open(const FunctionPolicy& policy,
                                                                 StreamContext& context) {
  std::unique_ptr<FunctionSession> session(new FunctionSession(policy, context));
  const FunctionStages& stages = context.functions();
  const plan::RunConfig& config = context.plan().config();
  const Extent& patch = config.patch;
  SharedPatches& patches = session->patches_;
  if (config.has_depth) patches.shape.push_back(patch.z);
  patches.shape.insert(patches.shape.end(), {patch.y, patch.x, context.plan().channels()});
  patches.pixels = context.chain().options().source_dtype;
  const auto bytes_at = [&stages](FunctionStage stage) {
    return stages.Has(stage) ? stages.PatchBytes(stage) : std::size_t{0};
  };
  const std::size_t pixels = bytes_at(FunctionStage::kPixels);
  const std::size_t values = bytes_at(FunctionStage::kValues);
  const std::size_t mask = context.has_labels() ? static_cast<std::size_t>(patch.Pixels()) : 0;
  patches.capacity = std::clamp<std::size_t>(kMaxSessionBytes / (pixels + values + mask), 1,
                                             std::min(kCallPatches, kMaxCallPatches));
  std::size_t end = 0;
  const auto place = [&end, &patches](std::size_t bytes) -> std::int64_t {
    if (bytes == 0) return -1;
    return static_cast<std::int64_t>(std::exchange(end, end + Aligned(bytes * patches.capacity)));
  };
  patches.pixels_at = place(pixels);
  patches.values_at = place(values);
  patches.mask_at = place(mask);
  PB_ASSIGN_OR_RETURN(session->memory_, memory::MemfdBlock::Create("patchbay-functions", end));
  return session;
}

std::span<std::byte> FunctionSession::Place(FunctionStage stage, std::size_t index) const {
  const std::int64_t at = stage == FunctionStage::kPixels ? patches_.pixels_at : patches_.values_at;
  const std::size_t bytes = context_.functions().PatchBytes(stage);
  return memory_.bytes().subspan(static_cast<std::size_t>(at) + index * bytes, bytes);
}

std::span<std::byte> FunctionSession::Mask(std::size_t index) const {
  if (patches_.mask_at < 0) return {};
  const auto bytes = static_cast<std::size_t>(context_.plan().config().patch.Pixels());
  return memory_.bytes().subspan(static_cast<std::size_t>(patches_.mask_at) + index * bytes, bytes);
}

/// The process is started anew where it has ended.
Status FunctionSession::Start(const WhileWaiting& waiting) {
  if (process_ != nullptr && process_->alive()) return absl::OkStatus();
  std::vector<FunctionSource> sources;
  const std::vector<plan::OwnFunction>& functions = context_.functions().functions();
  for (std::size_t i = 0; i < functions.size(); ++i) {
    PB_ASSIGN_OR_RETURN(FunctionFile file, context_.FileOfFunction(policy_, i));
    PB_RETURN_IF_ERROR(CheckAsPlanned(functions[i], file));
    sources.push_back({functions[i], std::move(file)});
    sources.back().function.key.clear();  // a plan's lists are ordered otherwise than the config's
  }
  PB_ASSIGN_OR_RETURN(process_,
                      FunctionHost::Start(policy_, std::move(sources), patches_, memory_, waiting));
  return CheckVersions(functions.front(), process_->versions());
}

Status FunctionSession::Run(FunctionStage stage, const CallKey& key, const WhileWaiting& waiting) {
  const std::vector<plan::OwnFunction>& functions = context_.functions().functions();
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].stage != stage) continue;
    PB_RETURN_IF_ERROR(Start(waiting));
    const std::int64_t before_ns = process_->cpu_ns();
    const Status called = process_->Call(i, key, waiting);
    cpu_ns_ += process_->cpu_ns() - before_ns;
    PB_RETURN_IF_ERROR(called);
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers
