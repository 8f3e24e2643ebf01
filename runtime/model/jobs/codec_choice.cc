#include "runtime/model/jobs/codec_choice.h"

#include <algorithm>

#include "runtime/core/strings.h"

namespace patchbay {
namespace {

/// The share of the free space that is used, as sizes are estimates.
constexpr double kUsableShare = 0.9;
/// Times so close to the least are equal: the smaller store is taken.
constexpr double kAboutEqual = 1.1;
/// The share of the shorter of processor and disk time that an ingest does not hide behind the
/// longer; fitted to ingests of one machine (tests/bench/codec_plan.py).
constexpr double kNotHidden = 0.4;

double At(double bytes, double rate) { return bytes / std::max(rate, 1.0); }

BoundTime SlowerOf(double processor_s, double disk_s) {
  return {std::max(processor_s, disk_s), disk_s > processor_s};
}

/// Stores are written once and read back once by their checks, which find kept tiles in memory.
/// Sources are read once from their disk: from its memory the second time.
double DiskSecondsOfIngest(const CodecMeasures& measures, double stored, bool keeps_tiles) {
  const double source = At(static_cast<double>(measures.source_bytes), measures.source_read_rate);
  const double back = keeps_tiles ? 0 : At(stored, measures.read_rate);
  const double stores = back + At(stored, measures.write_rate);
  return measures.is_one_disk ? source + stores : std::max(source, stores);
}

BoundTime IngestOf(double processor_s, double disk_s) {
  BoundTime time = SlowerOf(processor_s, disk_s);
  time.seconds += kNotHidden * std::min(processor_s, disk_s);
  return time;
}

CodecForecast ForecastOf(const CodecMeasures& measures, const CodecCost& cost, double cores,
                         double epochs) {
  CodecForecast forecast;
  forecast.codec = cost.codec;
  forecast.stored_bytes = cost.stored_bytes;
  forecast.fits = cost.stored_bytes <= kUsableShare * static_cast<double>(measures.free_bytes);
  forecast.ingest =
      IngestOf(cost.ingest_core_s / cores,
               DiskSecondsOfIngest(measures, cost.stored_bytes, cost.codec == "keep"));
  // Pages that fit into memory are read once, by the first pass; of others a part stays there.
  const double in_memory =
      std::min(1.0, static_cast<double>(measures.memory_bytes) / std::max(cost.stored_bytes, 1.0));
  const double again = (1 - in_memory) * cost.pass_bytes;
  const double first = std::max(again, std::min(cost.stored_bytes, cost.pass_bytes));
  const double processor_s = cost.pass_core_s / cores;
  forecast.first = SlowerOf(processor_s, At(first, measures.read_rate));
  forecast.later = SlowerOf(processor_s, At(again, measures.read_rate));
  forecast.seconds =
      forecast.ingest.seconds + forecast.first.seconds + (epochs - 1) * forecast.later.seconds;
  return forecast;
}

/// Why `best` and not another.
std::string Reason(const std::vector<CodecForecast>& forecasts, const CodecForecast& best,
                   const CodecForecast& fastest) {
  const auto fit = std::count_if(forecasts.begin(), forecasts.end(),
                                 [](const CodecForecast& one) { return one.fits; });
  if (fit == 1) return "no other fits into the free space";
  if (best.codec == fastest.codec) return "it takes the least time";
  return StrCat("it is the smallest within a tenth of the time of ", fastest.codec);
}

}  // namespace

StatusOr<CodecChoice> ChooseCodec(const CodecMeasures& measures, std::int64_t cores,
                                  std::int64_t epochs) {
  CodecChoice choice;
  for (const CodecCost& cost : measures.costs) {
    choice.forecasts.push_back(ForecastOf(measures, cost,
                                          static_cast<double>(std::max<std::int64_t>(1, cores)),
                                          static_cast<double>(epochs)));
  }
  const CodecForecast* fastest = nullptr;
  std::string sizes;
  for (const CodecForecast& one : choice.forecasts) {
    sizes += StrCat(sizes.empty() ? "" : ", ", one.codec, " ",
                    HumanBytes(static_cast<std::uint64_t>(one.stored_bytes)));
    if (one.fits && (fastest == nullptr || one.seconds < fastest->seconds)) fastest = &one;
  }
  if (fastest == nullptr) {
    return FailedPrecondition("no codec fits into the ", HumanBytes(measures.free_bytes),
                              " that are free: ", sizes);
  }
  const CodecForecast* best = fastest;
  for (const CodecForecast& one : choice.forecasts) {
    const bool is_close = one.fits && one.seconds <= kAboutEqual * fastest->seconds;
    if (is_close && one.stored_bytes < best->stored_bytes) best = &one;
  }
  choice.codec = best->codec;
  choice.why = Reason(choice.forecasts, *best, *fastest);
  return choice;
}

}  // namespace patchbay
