#include "runtime/client/resume_token.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/other_version.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json_stream.h"

namespace patchbay::client {
namespace {

constexpr std::string_view kTokenMark = "patchbay-resume-3", kEarlierMark = "patchbay-resume-2";
constexpr std::string_view kAnyMark = "patchbay-resume-";
constexpr std::size_t kPlanPart = 4;  ///< index of the plan's digest in a token; sections follow
constexpr std::size_t kSectionDigits = 16, kDigestDigits = 64;
constexpr std::size_t kEarlierSections = 4;
constexpr std::size_t kMaxTokenBytes = 1024;

Status NotAToken() { return InvalidArgument("resume: this is not a resume token of a stream"); }

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t colon = text.find(':');
    parts.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos) return parts;
    text.remove_prefix(colon + 1);
  }
}

bool ReadNumber(std::string_view text, std::uint64_t most, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value <= most;
}

/// A token whose mark is not known.
Status OfOtherVersion(std::string_view mark) {
  std::uint64_t version = 0;
  if (!mark.starts_with(kAnyMark) ||
      !ReadNumber(mark.substr(kAnyMark.size()), std::numeric_limits<std::uint16_t>::max(),
                  version)) {
    return NotAToken();
  }
  return FailedPrecondition("resume: the token has ",
                            OtherVersion(version, "2 and 3", kTakeItsRelease));
}

/// The part of a plan that comes from one input: members of its text, without those that
/// TakeSettled removes from `config`. The order of sections is that of a token.
struct Section {
  std::string_view name;
  std::vector<const char*> members;
  bool is_per_image = false;  ///< one entry per image: other images are other entries
  bool is_one = false;        ///< its name is singular
};

constexpr char kReferences[] = "stain reference", kForeground[] = "ct_normalize";
constexpr char kStains[] = "stain_normalize";
constexpr char kNumerics[] = "numerics";

const std::vector<Section>& Sections() {
  static const std::vector<Section> sections = {
      {"its versions (another build of Patchbay made it)", {"version", "versions"}},
      {"its config", {"config", "layout"}, false, true},
      {"its numerics (of the config, or what the cluster has)", {kNumerics}},
      {"its stain reference (the picture, or the slides of the cohort)",
       {kReferences},
       false,
       true},
      {"its numbers of ct_normalize (of the config, or the lock)", {kForeground}},
      {"its images", {"images", "channels", "dtype", "choices"}},
      {"its labels", {"labels"}},
      {"its places of tissue and classes", {"places"}, true},
      {"its columns of sampling.weight_by", {"groups"}, true},
      {"its table of positions", {"positions"}, true, true},
      {"its stain fits of the images", {"stains"}, true},
      {"its colour profiles of the images", {"icc"}, true},
      {"its spacing or statistics of the volumes", {"volumes"}, true},
      {"its resolutions of the images", {"views"}, true}};
  return sections;
}
/// The index, in Sections, of the images to which entries of other sections belong.
constexpr std::size_t kImages = 5;

/// Removes `members` from the options of every `op`; returns their values.
Json TakeOptions(Json& config, std::string_view op, std::initializer_list<const char*> members) {
  Json taken = Json::array();
  for (const char* list : {"preprocess", "augment"}) {
    const auto steps = config.find(list);
    if (steps == config.end()) continue;
    for (Json& step : *steps) {
      if (!step.contains(op)) continue;
      Json& options = step[std::string(op)];
      for (const char* member : members) {
        taken.push_back(options.value(member, Json()));
        options.erase(member);
      }
    }
  }
  return taken;
}

/// The members of a plan, with the values that planning puts into a config moved out of it: texts
/// in `settled`.
Status TakeSettled(JsonMembers& plan, std::map<std::string, std::string>& settled) {
  const auto found = plan.find("config");
  if (found == plan.end() || !found->second.starts_with('{')) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(Json config, ParseJson(found->second, "plan"));
  settled[kReferences] =
      DumpJson(TakeOptions(config, kStains, {"reference", "reference_fit", "scanner_fits"}));
  settled[kForeground] =
      DumpJson(TakeOptions(config, kForeground, {"lower", "upper", "mean", "std"}));
  settled[kNumerics] = DumpJson(config.value("numerics", Json()));
  config.erase("numerics");
  settled["config"] = DumpJson(config);
  for (const auto& [key, text] : settled) plan[key] = text;
  return absl::OkStatus();
}

/// The digest of the object with these members of the plan, put together without a copy of them.
std::string DigestOf(const JsonMembers& plan, const std::vector<const char*>& members) {
  Sha256 hash;
  std::string_view before = "{";
  for (const std::string& member : std::set<std::string>(members.begin(), members.end())) {
    const auto found = plan.find(member);
    if (found == plan.end()) continue;
    hash.Update(StrCat(before, DumpJson(member), ":"));
    hash.Update(found->second);
    before = ",";
  }
  hash.Update(before == "{" ? "{}" : "}");
  return hash.Finish().Hex().substr(0, kSectionDigits);
}

bool IsHex(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// The digests behind that of the plan.
StatusOr<PlanSections> SectionsFrom(std::span<const std::string_view> parts, bool is_earlier) {
  if (parts.size() != (is_earlier ? kEarlierSections : Sections().size())) return NotAToken();
  PlanSections sections;
  for (const std::string_view part : parts) {
    if (!IsHex(part, is_earlier ? kDigestDigits : kSectionDigits)) return NotAToken();
    if (!is_earlier) sections.digests.emplace_back(part);
  }
  return sections;
}

}  // namespace

StatusOr<PlanSections> SectionsOf(std::string_view plan_text) {
  PB_ASSIGN_OR_RETURN(JsonMembers plan, MembersOfJson(plan_text, "plan"));
  std::map<std::string, std::string> settled;
  PB_RETURN_IF_ERROR(TakeSettled(plan, settled));
  PlanSections sections;
  for (const Section& section : Sections()) {
    sections.digests.push_back(DigestOf(plan, section.members));
  }
  return sections;
}

std::string ResumeToken::Text() const {
  std::string text =
      StrCat(kTokenMark, ":", next.epoch, ":", next.batch, ":", global_size, ":", plan.Hex());
  for (const std::string& digest : sections.digests) text += ":" + digest;
  return text;
}

StatusOr<ResumeToken> ParseResumeToken(std::string_view text) {
  if (text.size() > kMaxTokenBytes) return NotAToken();
  const std::vector<std::string_view> parts = Split(text);
  const bool is_earlier = parts[0] == kEarlierMark;
  if (!is_earlier && parts[0] != kTokenMark) return OfOtherVersion(parts[0]);
  if (parts.size() < kPlanPart + 1) return NotAToken();
  ResumeToken token;
  std::uint64_t epoch = 0, global_size = 0;
  if (!ReadNumber(parts[1], kMaxEpoch, epoch) ||
      !ReadNumber(parts[2], std::numeric_limits<std::uint64_t>::max(), token.next.batch) ||
      !ReadNumber(parts[3], std::numeric_limits<std::uint32_t>::max(), global_size) ||
      global_size == 0) {
    return NotAToken();
  }
  token.next.epoch = static_cast<std::uint32_t>(epoch);
  token.global_size = static_cast<std::uint32_t>(global_size);
  const StatusOr<Digest> plan = Digest::FromHex(parts[kPlanPart]);
  if (!plan.ok()) return NotAToken();
  token.plan = *plan;
  // Numbers and digits in the one form that Text() has.
  const std::string begin = token.Text().substr(kTokenMark.size());
  if (!text.substr(kTokenMark.size()).starts_with(begin)) return NotAToken();
  PB_ASSIGN_OR_RETURN(token.sections,
                      SectionsFrom(std::span(parts).subspan(kPlanPart + 1), is_earlier));
  return token;
}

Status CheckResume(const ResumeToken& token, const Digest& plan, const PlanSections& sections) {
  if (token.plan == plan) return absl::OkStatus();
  const std::vector<std::string>&then = token.sections.digests, &now = sections.digests;
  std::vector<std::string> differ;
  bool is_one = true;
  for (std::size_t i = 0; i < std::min(then.size(), now.size()); ++i) {
    const bool follows = Sections()[i].is_per_image && then[kImages] != now[kImages];
    if (then[i] == now[i] || follows) continue;
    is_one = differ.empty() && Sections()[i].is_one;
    differ.emplace_back(Sections()[i].name);
  }
  const std::string_view unknown = then.empty()
                                       ? "its text (the token, of an earlier version, does not "
                                         "tell in which part)"
                                       : "its text";
  return FailedPrecondition("resume: the token is of another plan (",
                            token.plan.Hex().substr(0, 12), ", not ", plan.Hex().substr(0, 12),
                            "): ", differ.empty() ? std::string(unknown) : StrJoin(differ, " and "),
                            is_one ? " differs" : " differ");
}

Status CheckPosition(const ResumeToken& token, const StreamGeometry& geometry) {
  if (token.global_size != geometry.global_batch) {
    return FailedPrecondition("resume: the token counts batches of ", token.global_size,
                              " patches, the run's have ", geometry.global_batch);
  }
  const std::uint64_t batches = BatchesPerEpoch(geometry);
  if (token.next.batch >= batches) {
    return FailedPrecondition("resume: the token names batch ", token.next.batch, ": an epoch has ",
                              batches);
  }
  return absl::OkStatus();
}

}  // namespace patchbay::client
