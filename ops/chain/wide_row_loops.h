// The loops of row_loops.h in whole registers of the processor that HWY_BASELINE_TARGETS names:
// defined by the one file of a variant, before this include. Plain code comes before Highway's
// pragma: it stays code for every machine. A part of chain.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <immintrin.h>

#define HWY_COMPILE_ONLY_STATIC
#include "hwy/highway.h"
#include "ops/chain/row_loops.h"
#include "ops/chain/scalar_lanes.h"

// GCC 12 mistakes undefined operands in its own intrinsics for uses of uninitialised values.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

HWY_BEFORE_NAMESPACE();
#include "ops/chain/row_loop_templates.h"
#include "ops/lanes/wide_lanes.h"
HWY_AFTER_NAMESPACE();
