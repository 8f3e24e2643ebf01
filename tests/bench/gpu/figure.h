// How the GPU benches say a figure: one line of JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "runtime/core/strings.h"

namespace patchbay::bench {

/// Prints the time beside that of a copy on the device that reads and writes as many bytes; 0:
/// there is none. `kernels`: launched for it; none where the copy engine does it.
inline void PrintFigure(std::string_view what, double seconds, std::uint64_t bytes,
                        double beside_copy, std::uint64_t kernels = 0) {
  std::printf("%s\n", DumpJson(Json{{"what", what},
                                    {"ms", seconds * 1e3},
                                    {"bytes", bytes},
                                    {"gb_per_s", static_cast<double>(bytes) / seconds / 1e9},
                                    {"times_the_copy", beside_copy},
                                    {"kernels", kernels}})
                          .c_str());
  std::fflush(stdout);
}

}  // namespace patchbay::bench
