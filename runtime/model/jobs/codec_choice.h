// The choice of `ingest --codec auto`: by measurements that a worker makes on the job's own sources
// and disks, what each codec would come to, and the one to take. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"

namespace patchbay {

/// The cost of one codec for all sources of a job, scaled up from a sample of them.
struct CodecCost {
  std::string codec;
  double stored_bytes = 0;
  double ingest_core_s = 0;  ///< processor time of the whole ingest
  double pass_core_s = 0;    ///< the same of reading every pixel once, in random patches
  double pass_bytes = 0;     ///< read for that, if nothing stays in memory
  bool operator==(const CodecCost&) const = default;

  static constexpr auto Fields() {
    using T = CodecCost;
    return AsFullObject(Field("codec", &T::codec), Field("stored_bytes", &T::stored_bytes),
                        Field("ingest_core_s", &T::ingest_core_s),
                        Field("pass_core_s", &T::pass_core_s), Field("pass_bytes", &T::pass_bytes));
  }
};

/// The result of ingest.measure.
struct CodecMeasures {
  std::uint64_t sources = 0, source_bytes = 0;
  std::vector<std::string> kinds;  ///< sources' kinds: "aperio", "volume:dicom"
  std::string no_keep;             ///< why tiles cannot be kept, with the first such source; or ""
  double patches = 0;              ///< in one pass: 512 x 512 pixels, 96 x 96 x 96 voxels
  std::uint64_t free_bytes = 0;    ///< where the stores will lie
  std::uint64_t memory_bytes = 0;  ///< for pages of stores that stay in memory
  double source_read_rate = 0, read_rate = 0, write_rate = 0;  ///< bytes a second
  bool is_one_disk = false;                                    ///< sources and stores are on one
  std::vector<CodecCost> costs;
  bool operator==(const CodecMeasures&) const = default;

  static constexpr auto Fields() {
    using T = CodecMeasures;
    return AsFullObject(Field("sources", &T::sources), Field("source_bytes", &T::source_bytes),
                        Field("kinds", &T::kinds), Field("no_keep", &T::no_keep),
                        Field("patches", &T::patches), Field("free_bytes", &T::free_bytes),
                        Field("memory_bytes", &T::memory_bytes),
                        Field("source_read_rate", &T::source_read_rate),
                        Field("read_rate", &T::read_rate), Field("write_rate", &T::write_rate),
                        Field("is_one_disk", &T::is_one_disk), Field("costs", &T::costs));
  }
};

/// A step of the work: its time, and the slower of processor and disk.
struct BoundTime {
  double seconds = 0;
  bool is_by_disk = false;
  bool operator==(const BoundTime&) const = default;

  static constexpr auto Fields() {
    return AsFullObject(Field("seconds", &BoundTime::seconds),
                        Field("is_by_disk", &BoundTime::is_by_disk));
  }
};

/// Expectations of one codec.
struct CodecForecast {
  std::string codec;
  double stored_bytes = 0;
  bool fits = false;               ///< into the free space
  BoundTime ingest, first, later;  ///< the ingest, the first pass and each later one
  double seconds = 0;              ///< the ingest and all passes
  bool operator==(const CodecForecast&) const = default;

  static constexpr auto Fields() {
    using T = CodecForecast;
    return AsFullObject(Field("codec", &T::codec), Field("stored_bytes", &T::stored_bytes),
                        Field("fits", &T::fits), Field("ingest", &T::ingest),
                        Field("first", &T::first), Field("later", &T::later),
                        Field("seconds", &T::seconds));
  }
};

struct CodecChoice {
  std::string codec;
  std::string why;  ///< "the least time", as a sentence goes on after the codec
  std::vector<CodecForecast> forecasts;
  bool operator==(const CodecChoice&) const = default;

  static constexpr auto Fields() {
    using T = CodecChoice;
    return AsFullObject(Field("codec", &T::codec), Field("why", &T::why),
                        Field("forecasts", &T::forecasts));
  }
};

/// The codec that fits into the free space with the least time for the ingest and `epochs` passes
/// on `cores` cores; of those within a tenth of it, the smallest. FailedPrecondition when none
/// fits.
StatusOr<CodecChoice> ChooseCodec(const CodecMeasures& measures, std::int64_t cores,
                                  std::int64_t epochs);

}  // namespace patchbay
