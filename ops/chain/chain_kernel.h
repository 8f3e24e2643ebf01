// What the chain's kernel takes, as plain values. A part of chain.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/chain/chain_stage.h"

struct CUstream_st;

namespace patchbay::ops {

/// Patches in one launch: their parameters travel as kernel arguments.
inline constexpr int kLaunchPatches = 32;

struct ChainKernelPatch {
  const std::uint8_t* d_source = nullptr;
  std::byte* d_out = nullptr;
  WindowMap window;
};

struct ChainKernelBatch {
  ChainKernelPatch patch[kLaunchPatches];
  int count = 0;
  int channels = 3;
  int element_bytes = 1;
  bool planar = true;
  std::int64_t source_width = 0;           ///< pixels of a source row
  const std::uint32_t* d_table = nullptr;  ///< 256 entries a channel
};

/// In chain.cu. Queues one kernel; returns CUDA's error number. Does not synchronise.
int LaunchChainKernel(const ChainKernelBatch& batch, CUstream_st* stream);

}  // namespace patchbay::ops
