// Architectures B and B+: strips in one process, read into place, transformed from there.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/core/strings.h"
#include "tests/bench/spectra/frame_passes.h"
#include "tests/bench/spectra/rivals.h"
#include "tests/bench/spectra/slide_rows.h"

namespace patchbay::bench {
namespace {

/// Grey rows of a strip: first the kKept rows that it shares with the strip before.
struct Strip {
  std::int64_t row = 0, count = 0;  ///< its frame rows
  std::vector<std::uint8_t> grey;
};

/// The threads of one slide: each reads blocks of a strip, or computes frames of one.
class StripWorkers {
 public:
  static StatusOr<StripWorkers> Open(const RivalOptions& options) {
    StripWorkers workers;
    for (int i = 0; i < options.cores; ++i) {
      PB_ASSIGN_OR_RETURN(auto rows, SlideRows::Open(options.slide, options.own_reader));
      workers.readers_.push_back(std::move(rows));
      workers.passes_.push_back(std::make_unique<FramePasses>());
    }
    return workers;
  }

  std::int64_t width() const { return readers_[0]->width(); }
  std::int64_t frame_rows() const { return (readers_[0]->height() - kFrame) / kHop + 1; }

  /// Reads the strip on all cores at once; `before` is the strip above, already read, or null.
  Status Read(const Strip* before, Strip& strip) {
    std::int64_t top = strip.row * kHop, rows = strip.count * kHop + kKept;
    std::uint8_t* out = strip.grey.data();
    if (before != nullptr) {
      const std::int64_t bytes = kKept * width();
      std::memcpy(out, before->grey.data() + before->count * kHop * width(),
                  static_cast<std::size_t>(bytes));
      copied_bytes_ += bytes;
      top += kKept;
      rows -= kKept;
      out += bytes;
    }
    std::vector<Status> ends(readers_.size());
    // Each core keeps to its columns, so that OpenSlide's cache holds the tiles that reads share.
    OnAllCores([&](std::size_t core) {
      const auto part = [&](std::size_t n) {
        return width() * static_cast<std::int64_t>(n) / static_cast<std::int64_t>(readers_.size());
      };
      const std::int64_t block = BlockColumns(rows), right = part(core + 1);
      for (std::int64_t x = part(core); x < right && ends[core].ok(); x += block) {
        ends[core] =
            readers_[core]->Read(top, x, rows, std::min(block, right - x), out + x, width());
      }
    });
    for (const Status& end : ends) PB_RETURN_IF_ERROR(end);
    return absl::OkStatus();
  }

  /// Transforms the strip's frames on all cores at once.
  void Compute(const Strip& strip) {
    const std::int64_t columns = (width() - kFrame) / kHop + 1;
    std::atomic<std::int64_t> next = 0;
    OnAllCores([&](std::size_t core) {
      constexpr std::int64_t batch = FramePasses::kBatch;
      for (std::int64_t i; (i = next.fetch_add(batch)) < strip.count * columns;) {
        for (std::int64_t f = i; f < std::min(i + batch, strip.count * columns); ++f) {
          const std::int64_t y = f / columns * kHop, x = f % columns * kHop;
          passes_[core]->Add(strip.grey.data() + y * width() + x, width());
        }
      }
      passes_[core]->Finish();
    });
  }

  Outcome Finish() {
    Outcome all;
    for (const auto& passes : passes_) all.Add(passes->outcome());
    all.copied_bytes = copied_bytes_;
    return all;
  }

 private:
  void OnAllCores(const std::function<void(std::size_t)>& work) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < readers_.size(); ++i) threads.emplace_back(work, i);
    work(0);
  }

  std::vector<std::unique_ptr<SlideRows>> readers_;
  std::vector<std::unique_ptr<FramePasses>> passes_;
  std::int64_t copied_bytes_ = 0;
};

}  // namespace

StatusOr<Outcome> RunArchitectureB(const RivalOptions& options) {
  PB_ASSIGN_OR_RETURN(StripWorkers workers, StripWorkers::Open(options));
  const std::int64_t rows = workers.frame_rows(), step = options.strip_rows / kHop;
  Strip strips[2];
  for (Strip& strip : strips) {
    strip.grey.resize(static_cast<std::size_t>((kKept + step * kHop) * workers.width()));
  }
  std::size_t now = 0;
  strips[0].count = std::min(step, rows);
  PB_RETURN_IF_ERROR(workers.Read(nullptr, strips[0]));
  for (std::int64_t row = 0; row < rows; row += step, now = 1 - now) {
    Strip& next = strips[1 - now];
    next.row = row + step;
    next.count = std::clamp<std::int64_t>(rows - next.row, 0, step);
    Status read;
    std::jthread ahead;
    const auto read_next = [&] {
      if (next.count > 0) read = workers.Read(&strips[now], next);
    };
    if (options.reads_ahead) ahead = std::jthread(read_next);
    workers.Compute(strips[now]);
    if (options.reads_ahead) {
      ahead.join();
    } else {
      read_next();
    }
    PB_RETURN_IF_ERROR(read);
  }
  return workers.Finish();
}

}  // namespace patchbay::bench
