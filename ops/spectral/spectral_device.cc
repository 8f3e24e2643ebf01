#include "ops/spectral/spectral_device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "ops/geometry/pixels.h"
#include "ops/spectral/spectral_batches.h"
#include "ops/spectral/spectral_launch.h"
#include "runtime/core/strings.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"

namespace patchbay::ops {
namespace {

using spectral_passes::ComplexFloat;
using spectral_passes::GpuTally;
using spectral_passes::kGpuFrame;
using spectral_passes::kGpuHalf;
using spectral_passes::kStripRows;
using spectral_passes::PassPixels;
using spectral_passes::RowSum;

static_assert(kDeviceSpectralFrame == kGpuFrame);

constexpr std::size_t kCoefficients = std::size_t{kGpuFrame} * (kGpuHalf + 1);
/// A tally's counters hold so many frames without overflow; then they are read and cleared.
constexpr std::uint64_t kMaxDeviceTallyFrames = std::uint64_t{1} << 27;
/// Parts of one copy start at multiples of this.
constexpr std::size_t kPartBytes = 256;

constexpr std::size_t RoundedUp(std::size_t bytes) {
  return (bytes + kPartBytes - 1) / kPartBytes * kPartBytes;
}

/// How the one copy of a batch is laid out: its lists, then its pixels.
struct BlockLayout {
  std::size_t strips_at = 0, pixels_at = 0, row_bytes = 0, size_bytes = 0;
};

BlockLayout LayoutOf(std::size_t wanted, std::size_t strips, std::size_t height,
                     std::size_t row_bytes) {
  BlockLayout layout;
  layout.strips_at = RoundedUp(wanted * sizeof(std::uint32_t));
  layout.pixels_at = layout.strips_at + RoundedUp(strips * sizeof(std::uint32_t));
  layout.row_bytes = RoundedUp(row_bytes);
  layout.size_bytes = layout.pixels_at + height * layout.row_bytes;
  return layout;
}

/// The layout of the largest batch of these options.
BlockLayout LargestLayout(const plan::SpectralOptions& options, std::size_t pixel_bytes) {
  const auto hop = static_cast<std::size_t>(options.hop);
  const auto halo = 2 * static_cast<std::size_t>(plan::SpectralHalo(options));
  const std::size_t frame_rows = 1 + (kBatchRows - kGpuFrame) / hop;
  const std::size_t width = (kBatchColumns - 1) * hop + kGpuFrame + halo;
  return LayoutOf(frame_rows * kBatchColumns, kBatchRows / kStripRows * kBatchColumns,
                  kBatchRows + halo, width * pixel_bytes);
}

/// Stream and memory of one batch from its copy to its counting. Two slots take turns.
struct Slot {
  memory::OwnedGpuStream stream;
  memory::PinnedBuffer h_block;
  memory::DeviceBlock d_block, d_spectra, d_row_sums;
};

/// The counters of one SpectralSums. Its memory stays when the sums change.
struct Counter {
  SpectralSums* sums = nullptr;
  std::uint64_t frames = 0;
  memory::DeviceBlock d_tally;  ///< GpuTally, then the two coefficient arrays

  GpuTally* tally() const { return reinterpret_cast<GpuTally*>(d_tally.d_data()); }
  std::uint64_t* coefficients() const {
    return reinterpret_cast<std::uint64_t*>(d_tally.d_data() + sizeof(GpuTally));
  }
};

/// One channel to be added: its values, and its counter.
struct Channel {
  int component = -1;
  Counter* counter = nullptr;
};

class FramesOnDevice : public SpectralFrames {
 public:
  FramesOnDevice(const plan::SpectralOptions& options, int device)
      : options_(options), device_(device) {}
  ~FramesOnDevice() override {
    if (!memory::SelectGpu(device_).ok()) return;
    for (const Slot& slot : slots_) (void)slot.stream.WaitSync();
  }

  Status Allocate();
  Status Add(const SpectralPlane& plane, const FrameRange& frames,
             std::span<const std::uint8_t> wanted, SpectralSums& sums) override;
  Status AddRgb(const SpectralPlane& rgb, const FrameRange& frames,
                std::span<const std::uint8_t> wanted, std::span<SpectralSums> sums) override;
  Status Finish() override;

 private:
  std::size_t TallyBytes() const {
    return sizeof(GpuTally) + (options_.coefficients ? 2 * kCoefficients * 8 : 0);
  }
  Status FitPixels(std::size_t pixel_bytes);
  Status CheckSums(const SpectralSums& sums, std::size_t frames) const;
  StatusOr<Counter*> CounterOf(SpectralSums& sums);
  Status AddPixels(const SpectralPlane& block, int pixel_bytes, const FrameRange& frames,
                   std::span<const std::uint8_t> wanted, std::span<const Channel> channels);
  Status Queue(const SpectralPlane& block, int pixel_bytes, const SpectralBatch& batch,
               std::span<const Channel> channels, Slot& slot);
  PassMemory MemoryOf(const Slot& slot, const BlockLayout& layout, const Counter& counter) const;
  Status Fold(Counter& counter);

  plan::SpectralOptions options_;
  int device_;
  std::size_t pixel_bytes_ = 0;  ///< a pixel, at most, that the slots' blocks have room for
  std::array<Slot, 2> slots_;
  std::size_t next_slot_ = 0;
  memory::DeviceBlock d_tables_;
  memory::PinnedBuffer h_tally_;
  std::array<Counter, kMaxDeviceSums> counters_;
};

Status FramesOnDevice::Allocate() {
  PB_RETURN_IF_ERROR(memory::SelectGpu(device_));
  for (Slot& slot : slots_) {
    PB_ASSIGN_OR_RETURN(slot.stream, memory::OwnedGpuStream::Create());
    constexpr std::uint64_t kPlaces = std::uint64_t{kBatchRows} * kBatchColumns;
    PB_ASSIGN_OR_RETURN(slot.d_spectra,
                        memory::DeviceBlock::Allocate(kPlaces * kGpuHalf * sizeof(ComplexFloat)));
    PB_ASSIGN_OR_RETURN(slot.d_row_sums, memory::DeviceBlock::Allocate(kPlaces * sizeof(RowSum)));
  }
  PB_RETURN_IF_ERROR(FitPixels(1));
  PB_ASSIGN_OR_RETURN(h_tally_, memory::PinnedBuffer::Allocate(TallyBytes()));
  PB_ASSIGN_OR_RETURN(d_tables_, memory::DeviceBlock::Allocate(sizeof(SpectralTables)));
  const auto tables = std::make_unique<SpectralTables>(options_);
  PB_RETURN_IF_ERROR(memory::CopyToDevice(
      d_tables_.d_data(), std::as_bytes(std::span(tables.get(), 1)), slots_[0].stream.get()));
  return slots_[0].stream.WaitSync();
}

/// Makes the slots' blocks large enough for pixels of so many bytes.
Status FramesOnDevice::FitPixels(std::size_t pixel_bytes) {
  if (pixel_bytes_ >= pixel_bytes) return absl::OkStatus();
  const std::size_t size = LargestLayout(options_, pixel_bytes).size_bytes;
  for (Slot& slot : slots_) {
    PB_RETURN_IF_ERROR(slot.stream.WaitSync());
    PB_ASSIGN_OR_RETURN(slot.h_block, memory::PinnedBuffer::Allocate(size));
    PB_ASSIGN_OR_RETURN(slot.d_block, memory::DeviceBlock::Allocate(size));
  }
  pixel_bytes_ = pixel_bytes;
  return absl::OkStatus();
}

Status FramesOnDevice::CheckSums(const SpectralSums& sums, std::size_t frames) const {
  const std::size_t coefficients = options_.coefficients ? kCoefficients : 0;
  if (sums.ring_power.size() != kGpuHalf + 1 || sums.coefficient_q.size() != coefficients ||
      sums.coefficient_qq.size() != coefficients) {
    return InvalidArgument("count spectral frames: the sums are of other options");
  }
  if (frames > kMaxSpectralFrames || sums.frames > kMaxSpectralFrames - frames) {
    return ResourceExhausted("count spectral frames: more than ", kMaxSpectralFrames,
                             " frames in one set of sums");
  }
  return absl::OkStatus();
}

StatusOr<Counter*> FramesOnDevice::CounterOf(SpectralSums& sums) {
  for (Counter& counter : counters_) {
    if (counter.sums == &sums) return &counter;
  }
  for (Counter& counter : counters_) {
    if (counter.sums != nullptr) continue;
    if (counter.d_tally.d_data() == nullptr) {
      PB_ASSIGN_OR_RETURN(counter.d_tally, memory::DeviceBlock::Allocate(TallyBytes()));
      const memory::GpuStream stream = slots_[0].stream.get();
      PB_RETURN_IF_ERROR(memory::FillDevice(counter.d_tally.d_data(), 0, TallyBytes(), stream));
      PB_RETURN_IF_ERROR(slots_[0].stream.WaitSync());
    }
    counter.sums = &sums;
    return &counter;
  }
  return ResourceExhausted("count spectral frames: more than ", kMaxDeviceSums,
                           " sums before Finish");
}

Status FramesOnDevice::Add(const SpectralPlane& plane, const FrameRange& frames,
                           std::span<const std::uint8_t> wanted, SpectralSums& sums) {
  PB_RETURN_IF_ERROR(CheckSpectralBlock(options_, plane, 1, frames, wanted));
  const auto count = static_cast<std::size_t>((frames.row_end - frames.row_begin) *
                                              (frames.column_end - frames.column_begin));
  PB_RETURN_IF_ERROR(CheckSums(sums, count));
  PB_RETURN_IF_ERROR(memory::SelectGpu(device_));
  PB_ASSIGN_OR_RETURN(Counter * counter, CounterOf(sums));
  const Channel channel{-1, counter};
  return AddPixels(plane, 1, frames, wanted, std::span(&channel, 1));
}

Status FramesOnDevice::AddRgb(const SpectralPlane& rgb, const FrameRange& frames,
                              std::span<const std::uint8_t> wanted, std::span<SpectralSums> sums) {
  if (sums.size() != static_cast<std::size_t>(plan::SpectralChannels(options_))) {
    return InvalidArgument("count spectral frames: ", sums.size(), " sums for ",
                           plan::SpectralChannels(options_), " channels");
  }
  PB_RETURN_IF_ERROR(CheckSpectralBlock(options_, rgb, 3, frames, wanted));
  const auto count = static_cast<std::size_t>((frames.row_end - frames.row_begin) *
                                              (frames.column_end - frames.column_begin));
  for (const SpectralSums& one : sums) PB_RETURN_IF_ERROR(CheckSums(one, count));
  PB_RETURN_IF_ERROR(memory::SelectGpu(device_));
  PB_RETURN_IF_ERROR(FitPixels(3));
  std::vector<Channel> channels;
  for (std::size_t c = 0; c < sums.size(); ++c) {
    PB_ASSIGN_OR_RETURN(Counter * counter, CounterOf(sums[c]));
    channels.push_back({sums.size() == 1 ? -1 : static_cast<int>(c), counter});
  }
  return AddPixels(rgb, 3, frames, wanted, channels);
}

Status FramesOnDevice::AddPixels(const SpectralPlane& block, int pixel_bytes,
                                 const FrameRange& frames, std::span<const std::uint8_t> wanted,
                                 std::span<const Channel> channels) {
  for (const FrameRange& part : SplitFrames(frames, options_)) {
    const SpectralBatch batch = MakeBatch(part, frames, wanted, block, options_);
    if (batch.wanted.empty()) continue;
    for (const Channel& channel : channels) {
      if (channel.counter->frames + batch.wanted.size() > kMaxDeviceTallyFrames) {
        PB_RETURN_IF_ERROR(Fold(*channel.counter));
      }
    }
    Slot& slot = slots_[next_slot_];
    next_slot_ = (next_slot_ + 1) % slots_.size();
    PB_RETURN_IF_ERROR(slot.stream.WaitSync());
    PB_RETURN_IF_ERROR(Queue(block, pixel_bytes, batch, channels, slot));
  }
  return absl::OkStatus();
}

PassMemory FramesOnDevice::MemoryOf(const Slot& slot, const BlockLayout& layout,
                                    const Counter& counter) const {
  const auto* tables = reinterpret_cast<const SpectralTables*>(d_tables_.d_data());
  PassMemory memory;
  memory.twiddle = tables->twiddle;
  memory.window = tables->window;
  memory.rings = &tables->rings;
  memory.wanted = reinterpret_cast<const std::uint32_t*>(slot.d_block.d_data());
  memory.strips = reinterpret_cast<const std::uint32_t*>(slot.d_block.d_data() + layout.strips_at);
  memory.spectra = reinterpret_cast<ComplexFloat*>(slot.d_spectra.d_data());
  memory.row_sums = reinterpret_cast<RowSum*>(slot.d_row_sums.d_data());
  memory.tally = counter.tally();
  if (options_.coefficients) {
    memory.coefficient_q = counter.coefficients();
    memory.coefficient_qq = counter.coefficients() + kCoefficients;
  }
  return memory;
}

/// One copy and, for each channel, two kernels, in the slot's stream. The slot is idle.
Status FramesOnDevice::Queue(const SpectralPlane& block, int pixel_bytes,
                             const SpectralBatch& batch, std::span<const Channel> channels,
                             Slot& slot) {
  const auto row_bytes = static_cast<std::size_t>(batch.width * pixel_bytes);
  const BlockLayout layout = LayoutOf(batch.wanted.size(), batch.strips.size(),
                                      static_cast<std::size_t>(batch.height), row_bytes);
  PB_CHECK(layout.size_bytes <= slot.h_block.bytes().size());
  std::byte* h_block = slot.h_block.bytes().data();
  std::memcpy(h_block, batch.wanted.data(), batch.wanted.size() * sizeof(std::uint32_t));
  std::memcpy(h_block + layout.strips_at, batch.strips.data(),
              batch.strips.size() * sizeof(std::uint32_t));
  const std::uint8_t* from = block.pixels + (batch.top - block.top) * block.row_bytes +
                             (batch.left - block.left) * pixel_bytes;
  for (std::int64_t y = 0; y < batch.height; ++y) {
    std::memcpy(h_block + layout.pixels_at + static_cast<std::size_t>(y) * layout.row_bytes,
                from + y * block.row_bytes, row_bytes);
  }
  const memory::GpuStream stream = slot.stream.get();
  PB_RETURN_IF_ERROR(memory::CopyToDevice(slot.d_block.d_data(),
                                          slot.h_block.bytes().first(layout.size_bytes), stream));
  PassPixels pixels{};
  pixels.d_pixels = reinterpret_cast<const std::uint8_t*>(slot.d_block.d_data() + layout.pixels_at);
  pixels.row_bytes = static_cast<std::int64_t>(layout.row_bytes);
  pixels.top = batch.top;
  pixels.left = batch.left;
  pixels.image_height = block.image_height;
  pixels.image_width = block.image_width;
  pixels.pixel_bytes = pixel_bytes;
  for (const Channel& channel : channels) {
    pixels.component = channel.component;
    const PassMemory memory = MemoryOf(slot, layout, *channel.counter);
    PB_RETURN_IF_ERROR(LaunchOutcome(
        "spectral rows", LaunchSpectralRows(RowsPassOf(batch, options_, pixels, memory),
                                            static_cast<int>(batch.strips.size()), stream)));
    PB_RETURN_IF_ERROR(LaunchOutcome(
        "spectral columns", LaunchSpectralColumns(ColumnsPassOf(batch, options_, memory), stream)));
    channel.counter->frames += batch.wanted.size();
  }
  return absl::OkStatus();
}

/// Waits for queued work, adds the counter to its sums and clears it.
Status FramesOnDevice::Fold(Counter& counter) {
  for (const Slot& slot : slots_) PB_RETURN_IF_ERROR(slot.stream.WaitSync());
  const memory::GpuStream stream = slots_[0].stream.get();
  const std::span<std::byte> h_tally = h_tally_.bytes().first(TallyBytes());
  PB_RETURN_IF_ERROR(memory::CopyToHost(h_tally, counter.d_tally.d_data(), stream));
  PB_RETURN_IF_ERROR(memory::FillDevice(counter.d_tally.d_data(), 0, TallyBytes(), stream));
  PB_RETURN_IF_ERROR(slots_[0].stream.WaitSync());
  const auto* coefficients =
      reinterpret_cast<const std::uint64_t*>(h_tally.data() + sizeof(GpuTally));
  const std::size_t count = options_.coefficients ? kCoefficients : 0;
  AddTally(*reinterpret_cast<const GpuTally*>(h_tally.data()), counter.frames,
           {coefficients, count}, {coefficients + count, count}, *counter.sums);
  counter.frames = 0;
  return absl::OkStatus();
}

Status FramesOnDevice::Finish() {
  PB_RETURN_IF_ERROR(memory::SelectGpu(device_));
  for (Counter& counter : counters_) {
    if (counter.sums == nullptr) continue;
    PB_RETURN_IF_ERROR(Fold(counter));
    counter.sums = nullptr;
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<SpectralFrames>> CreateDeviceSpectralFrames(
    const plan::SpectralOptions& options, int device) {
  PB_RETURN_IF_ERROR(Annotate(options.Check(), "spectral"));
  if (options.frame != kDeviceSpectralFrame) {
    return Unimplemented("spectral on a gpu: frame ", options.frame, ": only ",
                         kDeviceSpectralFrame);
  }
  auto frames = std::make_unique<FramesOnDevice>(options, device);
  PB_RETURN_IF_ERROR(frames->Allocate());
  return std::unique_ptr<SpectralFrames>(std::move(frames));
}

}  // namespace patchbay::ops
