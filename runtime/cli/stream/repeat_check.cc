#include "runtime/cli/stream/repeat_check.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "runtime/cli/cluster_access.h"
#include "runtime/client/open_run.h"
#include "runtime/client/resume_token.h"
#include "runtime/client/stream_digest.h"
#include "runtime/core/strings.h"
#include "runtime/model/ops/own_functions.h"

namespace patchbay::cli {
namespace {

constexpr std::uint64_t kPatches = 48;
/// Batches of the first and of the second time. Their shards, and so the calls of a function, hold
/// other patches together.
constexpr std::uint32_t kFirstBatch = 8, kSecondBatch = 5;
/// The second time begins with this batch, of a process that has made none before it.
constexpr std::uint64_t kSecondBegin = 2;

using DigestsByOrdinal = std::map<std::uint64_t, Digest>;

/// The steps without the own functions but the one with this number.
Json OnlyFunction(const Json& augment, std::size_t wanted) {
  Json steps = Json::array();
  std::size_t number = 0;
  for (const Json& step : augment) {
    if (!plan::IsOwnFunction(step) || number++ == wanted) steps.push_back(step);
  }
  return steps;
}

/// Streams of one cluster.
class Repeater {
 public:
  Repeater(const Session& session, const client::RunSource& source, std::string split)
      : source_(source), split_(std::move(split)) {
    own_.cpus = 2;
    cluster_ = ClusterOptionsOf(session, &own_);
  }

  /// The arrays of the patches of epoch 0 from batch `begin` on, by ordinal.
  StatusOr<DigestsByOrdinal> Take(const Json& augment, std::uint32_t size, std::uint64_t begin) {
    PB_ASSIGN_OR_RETURN(std::unique_ptr<client::Run> run, Open(augment, size, ""));
    const std::uint64_t batches = run->stream->batches_per_epoch();
    begin = std::min(begin, batches - 1);
    if (begin > 0) {
      PB_ASSIGN_OR_RETURN(auto token, client::ParseResumeToken(run->stream->ResumeToken()));
      token.next = {0, begin};
      PB_RETURN_IF_ERROR(run->stream->Detach());
      PB_ASSIGN_OR_RETURN(run, Open(augment, size, token.Text()));
    }
    DigestsByOrdinal taken;
    const std::uint64_t end = std::min(batches, (kPatches + size - 1) / size);
    for (std::uint64_t n = begin; n < end; ++n) {
      auto batch = run->stream->Next();
      if (!batch.ok()) {
        const Status why = run->Explain(batch.status());
        run->Abandon();
        return why;
      }
      PB_ASSIGN_OR_RETURN(const std::vector<Digest> digests, client::PatchDigests(*batch));
      for (std::size_t i = 0; i < digests.size(); ++i) taken.emplace(n * size + i, digests[i]);
    }
    PB_RETURN_IF_ERROR(run->stream->Detach());
    return taken;
  }

 private:
  StatusOr<std::unique_ptr<client::Run>> Open(const Json& augment, std::uint32_t size,
                                              const std::string& token) {
    client::RunOptions options;
    options.source = source_;
    options.split = split_;
    options.resume_token = token;
    options.cluster = cluster_;
    options.open_cluster = open_;
    for (const std::string& text :
         {StrCat("augment=", DumpJson(augment)), std::string("batch.per_rank=null"),
          StrCat("batch.global_size=", size), std::string("batch.tail=keep")}) {
      options.source.overrides.push_back(text);
    }
    auto run = client::OpenRun(options);
    if (run.ok()) open_ = (*run)->cluster;
    return run;
  }

  const client::RunSource& source_;
  const std::string split_;
  OwnClusterArguments own_;
  client::ClusterOptions cluster_;
  std::shared_ptr<client::Cluster> open_;  ///< since the first stream
};

}  // namespace

StatusOr<RepeatReport> CheckRepeat(const Session& session, const client::RunSource& source,
                                   const std::string& split, const Json& augment) {
  PB_ASSIGN_OR_RETURN(const auto functions, plan::OwnFunctionsOf(augment));
  RepeatReport report;
  Repeater repeater(session, source, split);
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const plan::OwnFunction& function = functions[i];
    report.functions.push_back(function.function);
    const Json steps = OnlyFunction(augment, i);
    PB_ASSIGN_OR_RETURN(const DigestsByOrdinal first, repeater.Take(steps, kFirstBatch, 0));
    PB_ASSIGN_OR_RETURN(const DigestsByOrdinal second,
                        repeater.Take(steps, kSecondBatch, kSecondBegin));
    std::size_t compared = 0;
    std::string differs;
    for (const auto& [ordinal, digest] : second) {
      const auto before = first.find(ordinal);
      if (before == first.end()) continue;
      ++compared;
      if (before->second != digest && differs.empty()) differs = StrCat("patch ", ordinal);
    }
    report.patches = compared;
    if (differs.empty()) continue;
    report.unrepeatable.push_back(
        StrCat("key '", function.key, "': ", function.function, ": ", differs));
  }
  return report;
}

}  // namespace patchbay::cli
