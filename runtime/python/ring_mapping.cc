#include "runtime/python/ring_mapping.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace patchbay::python {
namespace {

constexpr std::uint8_t kSigned = 0, kUnsigned = 1, kFloat = 2, kBrainFloat = 4;
/// Values of Use::held.
constexpr std::uint32_t kHeld = 1, kDeviceWork = 2;

constexpr ElementType kTypes[] = {
    {"uint8", kUnsigned, 8, "B"},   {"int8", kSigned, 8, "b"},
    {"uint16", kUnsigned, 16, "H"}, {"int16", kSigned, 16, "h"},
    {"uint32", kUnsigned, 32, "I"}, {"int32", kSigned, 32, "i"},
    {"uint64", kUnsigned, 64, "Q"}, {"int64", kSigned, 64, "q"},
    {"float16", kFloat, 16, "e"},   {"bfloat16", kBrainFloat, 16, nullptr},
    {"float32", kFloat, 32, "f"},   {"float64", kFloat, 64, "d"}};

/// Closes descriptors that were handed to Open, whatever becomes of it.
struct Closing {
  int fd;
  ~Closing() {
    if (fd >= 0) close(fd);
  }
};

std::byte* MapAll(int fd, std::uint64_t size_bytes, const char* what) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < size_bytes) {
    throw std::runtime_error(std::string("map ") + what + ": smaller than announced");
  }
  void* const address = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) throw std::runtime_error(std::string("map ") + what + ": no memory");
  return static_cast<std::byte*>(address);
}

}  // namespace

DeferredRelease::DeferredRelease(std::shared_ptr<CudaContext> context,
                                 std::function<void(std::uint32_t)> give_back)
    : context_(std::move(context)), give_back_(std::move(give_back)) {}

DeferredRelease::~DeferredRelease() { Drain(); }

void DeferredRelease::Drain() {
  {
    const std::lock_guard lock(mu_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DeferredRelease::After(const std::vector<CudaStream>& streams, std::uint32_t item) {
  Item made{{}, item};
  for (const CudaStream stream : streams) {
    try {
      made.events.push_back(context_->Record(stream));
    } catch (const CudaError&) {  // NOLINT(bugprone-empty-catch): as the header says
    }
  }
  const std::lock_guard lock(mu_);
  items_.push_back(std::move(made));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.notify_one();
}

void DeferredRelease::Run() {
  sigset_t all;  // signals are for the interpreter's threads
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mu_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !items_.empty(); });
    if (items_.empty()) return;
    const Item item = std::move(items_.front());
    items_.pop_front();
    lock.unlock();
    for (const CudaEvent event : item.events) context_->AwaitAndDestroy(event);
    give_back_(item.number);
    lock.lock();
  }
}

const ElementType* FindElementType(const std::string& name) {
  for (const ElementType& type : kTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

std::shared_ptr<RingMapping> RingMapping::Open(const RingDescription& description) {
  const Closing control{description.control_fd}, ring{description.ring_fd};
  std::shared_ptr<RingMapping> mapping(new RingMapping);
  mapping->description_ = description;
  mapping->owner_ = getpid();
  std::uint32_t version = 0;  // the rest of other versions has another size
  if (pread(description.control_fd, &version, sizeof(version), 0) != sizeof(version) ||
      version != kHandoverVersion) {
    throw std::runtime_error("map ring: version " + std::to_string(version) +
                             ", this program knows " + std::to_string(kHandoverVersion) +
                             "; use the programs of this module's release (PATCHBAY_BIN)");
  }
  mapping->shared_ = reinterpret_cast<Handover*>(
      MapAll(description.control_fd, sizeof(Handover), "control words"));
  mapping->ring_ = MapAll(description.ring_fd, description.ring_bytes, "ring");
  if (description.device.has_value()) mapping->MapDevice();
  return mapping;
}

void RingMapping::MapDevice() {
  const DeviceDescription& device = *description_.device;
  d_ring_ = device.context->OpenMemory(device.ipc_handle);
  Defer(device.context);
}

void RingMapping::Defer(std::shared_ptr<CudaContext> context) {
  deferred_ = new DeferredRelease(std::move(context), [this](auto entry) { GiveBack(entry); });
}

void RingMapping::UseDevice(const std::shared_ptr<CudaContext>& context) {
  if (UsesDevice()) return;
  context->LockPages({ring_, description_.ring_bytes});
  pages_locked_ = true;
  Defer(context);
}

RingMapping::~RingMapping() {
  if (DeferredRelease* const deferred = deferred_.load(); deferred != nullptr && !IsFork()) {
    const std::unique_ptr<DeferredRelease> waits(deferred);
    waits->Drain();
    if (d_ring_ != nullptr) waits->context().CloseMemory(d_ring_);
    if (pages_locked_) waits->context().UnlockPages(ring_);
  }
  if (description_.link_fd >= 0) close(description_.link_fd);
  if (shared_ != nullptr) munmap(static_cast<void*>(shared_), sizeof(Handover));
  if (ring_ != nullptr) munmap(ring_, description_.ring_bytes);
}

bool RingMapping::IsFork() const { return getpid() != owner_; }

bool RingMapping::HasNext() const {
  return shared_->published.load(std::memory_order_acquire) != shared_->taken.load();
}

bool RingMapping::ClientGone() const {
  pollfd wait{description_.link_fd, POLLRDHUP, 0};
  return poll(&wait, 1, 0) > 0 && (wait.revents & (POLLHUP | POLLRDHUP | POLLNVAL)) != 0;
}

bool RingMapping::EverySlotHeld() const { return slots_held_.load() >= description_.slots; }

std::string RingMapping::HolderOf(std::uint32_t index) const {
  const HandoverEntry& entry = shared_->entries[index];
  std::string text =
      "epoch " + std::to_string(entry.epoch) + " batch " + std::to_string(entry.batch) + " (";
  if (uses_[index].in_batch != 0) text += "the batch, ";
  for (std::size_t i = 0; i < description_.arrays.size(); ++i) {
    const std::uint32_t count = uses_[index].arrays[i];
    if (count == 0) continue;
    text += description_.arrays[i].name + (count == 1 ? "" : " x" + std::to_string(count)) + ", ";
  }
  text.resize(text.size() - (text.back() == ' ' ? 2 : 0));
  const bool queued = uses_[index].held == kDeviceWork;
  return text + (text.back() != '(' ? ")" : queued ? "work on the device)" : "a tensor)");
}

std::string RingMapping::Holders() const {
  std::string text;
  for (std::uint32_t i = 0; i < kHandoverEntries; ++i) {
    if (uses_[i].held == 0 || shared_->entries[i].has_slot == 0) continue;
    text += (text.empty() ? "" : "; ") + HolderOf(i);
  }
  return text;
}

std::shared_ptr<Hold> RingMapping::Take() {
  const std::uint32_t at = shared_->taken.load();
  const std::uint32_t index = shared_->order[at % kHandoverEntries];
  if (index >= kHandoverEntries) throw std::runtime_error("take batch: no such entry");
  const HandoverEntry& entry = shared_->entries[index];
  if (entry.has_slot != 0 &&
      (entry.slot >= description_.ring_bytes / description_.slot_bytes ||
       (d_ring_ != nullptr &&
        entry.slot >= description_.device->bytes / description_.device->slot_bytes))) {
    throw std::runtime_error("take batch: its slot lies outside the ring");
  }
  auto hold = std::make_shared<Hold>(shared_from_this(), index);
  RaiseWord(shared_->taken);
  return hold;
}

Hold::Hold(std::shared_ptr<RingMapping> ring, std::uint32_t entry)
    : ring_(std::move(ring)), entry_(entry) {
  ring_->uses_[entry_].held = kHeld;
  if (this->entry().has_slot != 0) ++ring_->slots_held_;
}

Hold::~Hold() {
  if (ring_->IsFork()) return;
  DeferredRelease* const deferred = ring_->deferred_.load();
  if (deferred == nullptr || entry().has_slot == 0) {
    ring_->GiveBack(entry_);
    return;
  }
  for (const CudaStream stream :
       ring_->description_.consumer_streams(deferred->context().device())) {
    NoteStream(stream);
  }
  ring_->uses_[entry_].held = kDeviceWork;
  deferred->After(streams_, entry_);
}

void Hold::NoteStream(CudaStream stream) const {
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) {
    streams_.push_back(stream);
  }
}

void RingMapping::GiveBack(std::uint32_t entry) {
  HandoverEntry& own = shared_->entries[entry];
  if (own.has_slot != 0) --slots_held_;
  uses_[entry].held = 0;
  own.state.store(static_cast<std::uint32_t>(EntryState::kReleased), std::memory_order_release);
  RaiseWord(shared_->released);
}

std::byte* Hold::Address(std::size_t array) const {
  if (entry().has_slot == 0) return nullptr;
  const RingDescription& description = ring_->description_;
  const ArrayDescription& place = description.arrays[array];
  if (!place.on_device) return ring_->ring_ + entry().slot * description.slot_bytes + place.offset;
  return ring_->d_ring_ + entry().slot * description.device->slot_bytes + place.offset;
}

void Hold::CountArray(std::size_t array, int change) const {
  ring_->uses_[entry_].arrays[array] += static_cast<std::uint32_t>(change);
}

}  // namespace patchbay::python
