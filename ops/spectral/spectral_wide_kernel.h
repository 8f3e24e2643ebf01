// The kernel in whole registers of the processor that HWY_BASELINE_TARGETS names: defined by the
// one file of a variant, before this include. Plain code comes before Highway's pragma: it stays
// code for every machine. A part of spectral.
#pragma once

#include <type_traits>
#include <utility>

#include <immintrin.h>

#define HWY_COMPILE_ONLY_STATIC
#include "hwy/highway.h"
#include "ops/lanes/lane_code.h"
#include "ops/spectral/spectral_kernel.h"

// GCC 12 mistakes the don't-care operands of its own intrinsics for uninitialised values.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

HWY_BEFORE_NAMESPACE();
#include "ops/spectral/spectral_variant.h"
#include "ops/spectral/spectral_wide_lanes.h"
HWY_AFTER_NAMESPACE();
