#include "runtime/client/resume_token.h"

#include <charconv>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/strings.h"

namespace patchbay::client {
namespace {

constexpr std::string_view kMark = "patchbay-resume-2";
constexpr std::size_t kMaxTokenBytes = 1024;

Status NotAToken() {
  return absl::InvalidArgumentError("resume: this is not a resume token of a stream");
}

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

Digest DigestOf(const Json& plan, std::initializer_list<const char*> keys) {
  Json section = Json::object();
  for (const char* key : keys) {
    if (plan.contains(key)) section[key] = plan[key];
  }
  return Sha256Of(DumpJson(section));
}

}  // namespace

StatusOr<PlanSections> SectionsOf(std::string_view plan_text) {
  PB_ASSIGN_OR_RETURN(const Json plan, ParseJson(plan_text, "plan"));
  if (!plan.is_object()) return absl::InvalidArgumentError("plan: not an object");
  return PlanSections{DigestOf(plan, {"config", "layout"}),
                      DigestOf(plan, {"images", "channels", "dtype", "groups"}),
                      DigestOf(plan, {"labels", "places"}),
                      DigestOf(plan, {"version", "versions"})};
}

std::string ResumeToken::Text() const {
  std::string text = StrCat(kMark, ":", next.epoch, ":", next.batch, ":", global_size);
  for (const Digest& digest :
       {plan, sections.config, sections.images, sections.labels, sections.versions}) {
    text += ":" + digest.Hex();
  }
  return text;
}

StatusOr<ResumeToken> ParseResumeToken(std::string_view text) {
  if (text.size() > kMaxTokenBytes) return NotAToken();
  const std::vector<std::string_view> parts = Split(text);
  if (parts.size() != 9 || parts[0] != kMark) return NotAToken();
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
  Digest* const digests[] = {&token.plan, &token.sections.config, &token.sections.images,
                             &token.sections.labels, &token.sections.versions};
  for (std::size_t i = 0; i < std::size(digests); ++i) {
    StatusOr<Digest> digest = Digest::FromHex(parts[4 + i]);
    if (!digest.ok()) return NotAToken();
    *digests[i] = *digest;
  }
  if (token.Text() != text) return NotAToken();
  return token;
}

Status CheckResume(const ResumeToken& token, const Digest& plan, const PlanSections& sections) {
  if (token.plan == plan) return absl::OkStatus();
  const PlanSections& then = token.sections;
  const std::tuple<Digest, Digest, std::string_view> rows[] = {
      {then.versions, sections.versions, "its versions (another build of Patchbay made it)"},
      {then.config, sections.config, "its config"},
      {then.images, sections.images, "its images"},
      {then.labels, sections.labels, "its labels"}};
  std::vector<std::string> differ;
  for (const auto& [before, now, name] : rows) {
    if (before != now) differ.emplace_back(name);
  }
  return absl::FailedPreconditionError(
      StrCat("resume: the token is of another plan (", token.plan.Hex().substr(0, 12), ", not ",
             plan.Hex().substr(0, 12),
             "): ", differ.empty() ? std::string("its text") : StrJoin(differ, " and "),
             differ.size() > 1 ? " differ" : " differs"));
}

Status CheckPosition(const ResumeToken& token, const StreamGeometry& geometry) {
  if (token.global_size != geometry.global_batch) {
    return absl::FailedPreconditionError(StrCat("resume: the token counts batches of ",
                                                token.global_size, " patches, the run's have ",
                                                geometry.global_batch));
  }
  const std::uint64_t batches = BatchesPerEpoch(geometry);
  if (token.next.batch >= batches) {
    return absl::FailedPreconditionError(
        StrCat("resume: the token names batch ", token.next.batch, ": an epoch has ", batches));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::client
