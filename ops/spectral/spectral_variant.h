// One variant's loops for every frame size. Include after its target pragma. A part of spectral.
#pragma once

#include "ops/spectral/spectral_columns.h"
#include "ops/spectral/spectral_count.h"

namespace patchbay::ops {

template <typename V, int frame>
SpectralKernel KernelOfFrame(bool hann) {
  return {&TransformColumns<V, frame>,
          hann ? &CountFrame<V, frame, true> : &CountFrame<V, frame, false>};
}

/// `frame` is valid.
template <typename V>
SpectralKernel KernelOf(int frame, bool hann) {
  switch (frame) {
    case 32:
      return KernelOfFrame<V, 32>(hann);
    case 64:
      return KernelOfFrame<V, 64>(hann);
    case 128:
      return KernelOfFrame<V, 128>(hann);
    case 256:
      return KernelOfFrame<V, 256>(hann);
    default:
      return KernelOfFrame<V, 512>(hann);
  }
}

}  // namespace patchbay::ops
