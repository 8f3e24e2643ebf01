// Jobs whose every task is on slow storage: none may go without progress for as long as a lease.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/os/file.h"
#include "runtime/os/folders.h"
#include "tests/workers/jobs/ingest/small_ingest.h"
#include "tests/workers/jobs/slow_storage/slow_storage.h"

namespace patchbay::workers {

using Ops = std::set<std::string>;

/// The ops that each kind of job runs. Together they are the whole task table.
inline const Ops kIngestOps = {"ingest.plan",    "ingest.open",  "ingest.shard",
                               "ingest.join",    "ingest.check", "ingest.finalise",
                               "ingest.summary", "ingest.clean", "labels.import"};
inline const Ops kMeasureOps = {"ingest.measure"};
inline const Ops kConvertOps = {"convert.plan",  "convert.open",    "convert.part",
                                "convert.store", "convert.summary", "convert.clean"};
inline const Ops kVolumeOps = {"ingest.plan", "ingest.open", "ingest.volume", "ingest.summary",
                               "ingest.clean"};
inline const Ops kLabelOps = {"labels.plan",    "labels.import", "labels.export",
                              "labels.compare", "labels.prune",  "labels.delete"};
inline const Ops kStreamOps = {"stream.plan", "stream.open", "stream.join", "lock.images",
                               "preview.patches"};
inline const Ops kLookOps = {"scan", "inspect", "verify", "preview.images"};
inline const Ops kSpectraOps = {"spectra.plan",  "spectra.open",    "spectra.strip", "spectra.name",
                                "spectra.slide", "spectra.summary", "spectra.clean"};
inline const Ops kSynthOps = {"synth.slide", "synth.ct", "synth.volume"};

class SlowJob : public SmallIngest {
 protected:
  /// Runs a job whose every task is on slow storage.
  JobRunner Run(const std::string& op, const Json& payload, const Json& manifest) {
    JobRunner job(manifest, 1);
    job.before_attempt = [](const TaskSignals& signals) { SlowStorage::Begin(&signals.progress); };
    job.after_attempt = [&](const std::string& of) {
      longest_ms_[of] = std::max(longest_ms_[of], SlowStorage::End());
      operations_ += SlowStorage::operations();
    };
    job.Submit(op, payload);
    job.Run();
    for (const Status& failure : job.Failures()) ADD_FAILURE() << Describe(failure);
    return job;
  }

  /// Expects that the jobs so far ran these ops and no others, and that no task was without
  /// progress for kShortLeaseMs.
  void ExpectLeasesHold(const Ops& ops) const {
    Ops ran;
    for (const auto& [op, ms] : longest_ms_) {
      ran.insert(op);
      EXPECT_LT(ms, kShortLeaseMs) << op << ": without progress for so many ms";
    }
    EXPECT_EQ(ran, ops);
    EXPECT_GT(operations_, kMany) << "what the tasks do was not seen";
  }

  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(ReplaceFile(Folders::OfThisUser(), Path(name), AsBytes(text)).ok());
  }

  /// The only store in the folder of stores.
  std::string Store() const {
    for (const std::string& name : Below(out_)) {
      if (name.ends_with(".zarr")) return out_ + "/" + name;
    }
    ADD_FAILURE() << "no store";
    return "";
  }

  /// Copies of a store in the folder "many".
  std::vector<std::string> Copies(const std::string& store) const {
    std::vector<std::string> copies;
    for (int i = 0; i < kMany; ++i) {
      copies.push_back(Path(StrCat("many/", i, ".ome.zarr")));
      std::filesystem::create_directories(Path("many"));
      std::filesystem::copy(store, copies.back(), std::filesystem::copy_options::recursive);
    }
    return copies;
  }

  /// So many that an operation for each, without progress, is longer than the lease.
  static constexpr int kMany = kShortLeaseMs / kOperationMs + 4;
  /// So many that a lookup for each is.
  static constexpr int kVeryMany = kShortLeaseMs / kLookupMs + 20;

 private:
  std::map<std::string, std::int64_t> longest_ms_;  ///< without progress, by op
  std::int64_t operations_ = 0;
};

}  // namespace patchbay::workers
