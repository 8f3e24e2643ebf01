// A trainer on a GPU: takes batches into host or device slots, copies the images to memory of its
// own in its own stream, and lets each slot go by an event on that stream, as a training step does.
//   patchbay-test-gpu-trainer RUN.yaml BATCHES GPUS host|DEVICE [PAUSE_FILE]
// GPUS is what its embedded cluster may use ("none", "auto"). Prints the SHA-256 of all images.
// With PAUSE_FILE it says "first" after the first batch and goes on once the file is there.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "ops/all_ops.h"
#include "runtime/client/open_run.h"
#include "runtime/core/hash.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"

namespace {

namespace client = patchbay::client;
namespace memory = patchbay::memory;

/// Leaves through main, so that the stream and its threads end before the program does.
struct Failed {};

void Must(const patchbay::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", patchbay::Describe(status).c_str());
  throw Failed();
}
template <typename T>
T Must(patchbay::StatusOr<T> value) {
  Must(value.status());
  return *std::move(value);
}

void Pause(const std::filesystem::path& until) {
  std::printf("first\n");
  std::fflush(stdout);
  while (!std::filesystem::exists(until)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// The batch's images, once `stream` has passed; the slot goes back by the stream's event.
memory::PinnedBuffer Copied(client::Batch& batch, memory::GpuStream stream) {
  const auto image = Must(batch.array("image")).tensor;
  std::uint64_t bytes = patchbay::SizeOf(image.dtype);
  for (int i = 0; i < image.rank; ++i) bytes *= static_cast<std::uint64_t>(image.shape[i]);
  auto copy = Must(memory::PinnedBuffer::Allocate(bytes));
  if (batch.on_device()) {
    Must(memory::CopyToHost(copy.bytes(), image.data, stream));
    Must(batch.ReleaseAfter(stream));
  } else {
    std::memcpy(copy.bytes().data(), image.data, bytes);
  }
  batch.Release();
  return copy;
}

int Train(int argc, char** argv) {
  const std::string slots = argv[4];
  client::RunOptions options;
  options.source.file = argv[1];
  options.cluster.environment = client::ReadEnvironment(environ, patchbay::ops::Table());
  options.cluster.may_start = true;
  options.cluster.cpus = 2;
  options.cluster.gpus = argv[3];
  if (slots != "host") {
    options.memory = client::SlotMemory::kDevice;
    options.device = std::stoi(slots);
  }
  auto run = Must(client::OpenRun(options));
  Must(memory::SelectGpu(slots == "host" ? 0 : options.device));
  const auto stream = Must(memory::OwnedGpuStream::Create());
  std::vector<memory::PinnedBuffer> taken;
  for (int i = 0; i < std::stoi(argv[2]); ++i) {
    auto batch = run->stream->Next(60'000);
    Must(run->Explain(batch.status()));
    taken.push_back(Copied(*batch, stream.get()));
    if (i == 0 && argc > 5) Pause(argv[5]);
  }
  Must(stream.WaitSync());
  std::vector<std::byte> all;
  for (const auto& copy : taken) all.insert(all.end(), copy.bytes().begin(), copy.bytes().end());
  std::printf("%s\n", patchbay::Sha256Of(all).Hex().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return argc < 5 ? 2 : Train(argc, argv);
} catch (const Failed&) {
  return 1;
}
