#include "runtime/cli/stream/run_reports.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cli/skipped_files.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"

namespace patchbay::cli {
namespace {

/// Splits in a line; the JSON has them all.
constexpr std::size_t kMostSaid = 12;

void SaySplits(Terminal& terminal, const plan::SplitCensus& census) {
  std::vector<std::string> said;
  for (const auto& [name, split] : census.splits) {
    if (said.size() == kMostSaid) {
      said.push_back("...");
      break;
    }
    said.push_back(StrCat(name, " ", Counted(split.rows, "row"),
                          split.role ? StrCat(" (", NameOf(*split.role), ")") : ""));
  }
  terminal.Say(StrCat(
      "splits             ", StrJoin(said, ", "),
      census.without_split == 0 ? "" : StrCat("; in none ", Counted(census.without_split, "row"))));
}

constexpr std::size_t kSkippedSaid = 20;

constexpr char kLabelArray[] = "label";

/// The name of a value of `label`: of its class, else the number itself.
std::string LabelName(const plan::Plan& plan, std::int64_t value) {
  if (const auto& labels = plan.images().front().labels) {
    for (const plan::NamedValue& one : labels->classes) {
      if (one.value == value) return one.name;
    }
  }
  return value == 255 ? "ignored" : StrCat(value);
}

/// The names of the classes that are drawn, in the order of the plan's sets of places.
std::vector<std::string> DrawnClasses(const plan::Plan& plan) {
  std::vector<std::string> names;
  for (const auto& [name, weight] : plan.config().class_weights) names.push_back(name);
  return names;
}

}  // namespace

Json ReportSplits(Terminal& terminal, const client::RunFile& run) {
  if (!run.census) return nullptr;
  const plan::SplitCensus& census = *run.census;
  std::vector<std::string> notices = run.LeakNotices();
  for (const std::string& notice : notices) terminal.Note(notice);
  SaySplits(terminal, census);
  const std::size_t contents = run.known_contents.compared();
  terminal.Say(StrCat("compared for leaks ", "patient_id of ", census.with_patient,
                      " and content of ", contents, " of ", Counted(census.rows, "row")));
  Json rows = Json::object(), roles = Json::object();
  for (const auto& [name, split] : census.splits) {
    rows[name] = split.rows;
    if (split.role) roles[name] = NameOf(*split.role);
  }
  return {{"rows", std::move(rows)},
          {"roles", std::move(roles)},
          {"without_split", census.without_split},
          {"compared",
           {{"rows", census.rows}, {"patient_id", census.with_patient}, {"content", contents}}},
          {"notices", std::move(notices)}};
}

void ReportSkipped(Terminal& terminal, const results::SkippedImages& skipped) {
  PrintSkipped(terminal, skipped.files);
  const std::size_t said = std::min(skipped.images.size(), kSkippedSaid);
  for (std::size_t i = 0; i < said; ++i) {
    terminal.Note(StrCat("skipped ", skipped.images[i].path, ": ", skipped.images[i].reason));
  }
  if (skipped.count > said) {
    terminal.Note(StrCat("skipped ", skipped.count, " images in all; --json lists the first ",
                         skipped.images.size()));
  }
  for (std::size_t i = 0; i < std::min(skipped.without_stain.size(), kSkippedSaid); ++i) {
    const auto& [path, reason] = skipped.without_stain[i];
    terminal.Note(reason.starts_with("not H&E")
                      ? StrCat(path, ": ", reason)
                      : StrCat(path, ": no stain fit (", reason,
                               "): it is normalised with the built-in default fit"));
  }
  for (std::size_t i = 0; i < std::min(skipped.without_icc.size(), kSkippedSaid); ++i) {
    terminal.Note(StrCat(skipped.without_icc[i].path, ": icc_to_srgb: ",
                         skipped.without_icc[i].reason, ": its colours are taken for sRGB"));
  }
  for (std::size_t i = 0; i < std::min(skipped.mpp_corrected.size(), kSkippedSaid); ++i) {
    terminal.Note(StrCat(skipped.mpp_corrected[i].path, ": by the table's column mpp ",
                         skipped.mpp_corrected[i].reason));
  }
  for (std::size_t i = 0; i < std::min(skipped.parts_chosen.size(), kSkippedSaid); ++i) {
    terminal.Note(
        StrCat(skipped.parts_chosen[i].path, ": by the table ", skipped.parts_chosen[i].reason));
  }
}

Json ToJson(const results::SkippedImages& skipped) {
  Json value = JsonOf(skipped);
  value.erase("skipped_files");
  return value;
}

void RealisedCounts::Add(const client::Batch& batch) {
  batches_.push_back({batch.epoch(), batch.index(), batch.count()});
  const StatusOr<client::BatchArray> label = batch.array(kLabelArray);
  if (!label.ok() || batch.on_device()) return;
  for (std::uint32_t i = 0; i < batch.count(); ++i) {
    if (batch.IsPadding(i)) continue;
    std::int64_t value = 0;
    std::memcpy(&value, static_cast<const std::byte*>(label->tensor.data) + i * sizeof(value),
                sizeof(value));
    ++labels_[value];
  }
}

StatusOr<Json> RealisedCounts::Count(const plan::Plan& plan, const StreamGeometry& geometry,
                                     std::uint32_t rank, const std::vector<std::string>& slides,
                                     const std::vector<std::string>& sites) const {
  const std::vector<std::string> drawn = DrawnClasses(plan);
  std::vector<std::uint64_t> images(plan.images().size());
  std::map<std::string, std::uint64_t> by_slide, by_site, by_class;
  for (const Taken& taken : batches_) {
    const std::uint64_t first = RankRun(geometry, taken.batch, rank).first_ordinal;
    for (std::uint32_t i = 0; i < taken.patches; ++i) {
      PB_ASSIGN_OR_RETURN(const plan::PatchSource source, plan.SourceOf(taken.epoch, first + i));
      if (source.pad) continue;
      ++images[source.image];
      if (!drawn.empty() && labels_.empty()) ++by_class[drawn[source.set]];
    }
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (images[i] == 0) continue;
    by_slide[slides[i]] += images[i];
    if (!sites[i].empty()) by_site[sites[i]] += images[i];
  }
  for (const auto& [value, patches] : labels_) by_class[LabelName(plan, value)] += patches;
  Json counts = {{"slides", by_slide}};
  if (!by_site.empty()) counts["sites"] = by_site;
  if (!by_class.empty()) counts["classes"] = by_class;
  return counts;
}

}  // namespace patchbay::cli
