#include "runtime/model/plan/listed_sequence.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "runtime/core/base64.h"
#include "runtime/model/draw/permutation.h"
#include "runtime/model/plan/listed_positions.h"
#include "runtime/model/positions/varint.h"

namespace patchbay::plan {
namespace {

Status WrongOrder(const char* cause) { return InvalidArgument("order of positions: ", cause); }

/// Image after image, and which of them have no run.
std::vector<ListedRun> ByImage(std::span<const ListedSequence::Count> counts) {
  std::vector<ListedRun> runs;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].listed == 0) continue;
    runs.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(counts[i].listed)});
  }
  return runs;
}

Status CheckRuns(std::span<const ListedRun> runs, std::span<const ListedSequence::Count> counts) {
  std::vector<std::uint64_t> listed(counts.size());
  for (const ListedRun& run : runs) {
    if (run.image >= counts.size()) return WrongOrder("an image that is not there");
    listed[run.image] += run.places;
  }
  const auto is_all = [](std::uint64_t sum, const ListedSequence::Count& count) {
    return sum == count.listed && count.taken <= count.listed;
  };
  if (std::equal(listed.begin(), listed.end(), counts.begin(), is_all)) return absl::OkStatus();
  return WrongOrder("not every place of the images once");
}

/// Numbers of the places that an epoch has of an image, rising.
std::vector<std::uint32_t> Choose(std::uint64_t seed, const ListedSequence::Count& count) {
  std::vector<std::uint32_t> chosen;
  for (std::uint64_t i = 0; i < count.taken; ++i) {
    chosen.push_back(static_cast<std::uint32_t>(Permute({seed, 0}, count.listed, i)));
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace

void AppendListed(std::uint32_t image, std::uint32_t places, std::vector<ListedRun>& runs) {
  if (places == 0) return;
  if (!runs.empty() && runs.back().image == image) {
    runs.back().places += places;
  } else {
    runs.push_back({image, places});
  }
}

std::string EncodeListedRuns(std::span<const ListedRun> runs) {
  std::string bytes;
  for (const ListedRun& run : runs) {
    AppendVarint(bytes, run.image);
    AppendVarint(bytes, run.places);
  }
  return Base64Of(bytes);
}

StatusOr<std::vector<ListedRun>> DecodeListedRuns(std::string_view text) {
  PB_ASSIGN_OR_RETURN(const std::string bytes, FromBase64(text));
  std::vector<ListedRun> runs;
  std::uint64_t left_places = kMaxListedPositions;
  for (std::string_view left = bytes; !left.empty();) {
    std::uint64_t image = 0, places = 0;
    if (!TakeVarint(left, std::numeric_limits<std::uint32_t>::max(), image) ||
        !TakeVarint(left, left_places, places) || places == 0 ||
        (!runs.empty() && runs.back().image == image)) {
      return WrongOrder("not as it is written");
    }
    left_places -= places;
    runs.push_back({static_cast<std::uint32_t>(image), static_cast<std::uint32_t>(places)});
  }
  return runs;
}

StatusOr<std::optional<ListedSequence>> ListedSequence::Of(std::span<const ListedRun> runs,
                                                           std::span<const Count> counts,
                                                           std::uint64_t seed) {
  std::vector<ListedRun> by_image;
  if (runs.empty()) {
    by_image = ByImage(counts);
    runs = by_image;
  }
  PB_RETURN_IF_ERROR(CheckRuns(runs, counts));
  const auto goes_back = [](const ListedRun& a, const ListedRun& b) { return a.image >= b.image; };
  const bool in_order =
      std::adjacent_find(runs.begin(), runs.end(), goes_back) == runs.end() &&
      std::all_of(counts.begin(), counts.end(), [](const Count& c) { return c.taken == c.listed; });
  if (in_order) return std::nullopt;
  ListedSequence order;
  order.text_ = EncodeListedRuns(runs);
  order.chosen_.resize(counts.size());
  order.last_.resize(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    order.taken_.push_back(static_cast<std::uint32_t>(counts[i].taken));
    if (counts[i].taken == counts[i].listed) continue;
    order.chosen_[i] = Choose(seed ^ (0x9E3779B97F4A7C15u * (i + 1)), counts[i]);
  }
  std::vector<std::uint32_t> before(counts.size());
  for (const ListedRun& run : runs) {
    order.Add(run.image, before[run.image], run.places);
    before[run.image] += run.places;
  }
  return order;
}

/// The places of a run that are taken; `number` counts the image's places before it.
void ListedSequence::Add(std::uint32_t image, std::uint32_t number, std::uint32_t places) {
  const std::vector<std::uint32_t>& chosen = chosen_[image];
  const auto rank = [&](std::uint32_t at) {
    if (chosen.empty()) return std::min(at, taken_[image]);
    const auto found = std::lower_bound(chosen.begin(), chosen.end(), at);
    return static_cast<std::uint32_t>(found - chosen.begin());
  };
  const std::uint32_t first = rank(number), end = rank(number + places);
  if (first == end) return;
  if (stretches_.empty() || stretches_.back().image != image) {
    stretches_.push_back({patches_, image, first});
  }
  patches_ += end - first;
  last_[image] = patches_ - 1;
}

ListedSequence::Place ListedSequence::At(std::uint64_t ordinal) const {
  const auto after = std::upper_bound(
      stretches_.begin(), stretches_.end(), ordinal,
      [](std::uint64_t at, const Stretch& stretch) { return at < stretch.ordinal; });
  const Stretch& stretch = *std::prev(after);
  const std::uint64_t number = stretch.number + (ordinal - stretch.ordinal);
  const std::vector<std::uint32_t>& chosen = chosen_[stretch.image];
  return {stretch.image, chosen.empty() ? number : chosen[number]};
}

std::optional<std::uint64_t> ListedSequence::LastOf(std::uint32_t image) const {
  if (taken_[image] == 0) return std::nullopt;
  return last_[image];
}

std::vector<std::uint64_t> ListedSequence::RunLengths() const {
  std::vector<std::uint64_t> lengths;
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    const std::uint64_t end = i + 1 < stretches_.size() ? stretches_[i + 1].ordinal : patches_;
    lengths.push_back(end - stretches_[i].ordinal);
  }
  return lengths;
}

}  // namespace patchbay::plan
