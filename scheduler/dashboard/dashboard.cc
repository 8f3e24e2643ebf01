#include "scheduler/dashboard/dashboard.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "scheduler/dashboard/page_files.h"
#include "scheduler/dashboard/view.h"
#include "scheduler/http/http_listener.h"

namespace patchbay::scheduler {
namespace {

constexpr std::string_view kJson = "application/json; charset=utf-8";
constexpr std::size_t kMinutesKept = 60;
constexpr std::int64_t kNsInSecond = 1'000'000'000, kNsInMs = 1'000'000;

struct File {
  std::string_view path, type;
  const std::string_view& text;
};
constexpr std::string_view kIcon =
    R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path fill="#2f81f7" d="M1 1h6v6H1z"/></svg>)";
const std::array<File, 4> kFiles = {{{"/", "text/html; charset=utf-8", kPageHtml},
                                     {"/page.css", "text/css; charset=utf-8", kPageCss},
                                     {"/page.js", "text/javascript; charset=utf-8", kPageScript},
                                     {"/icon.svg", "image/svg+xml", kIcon}}};

/// 256 random bits.
std::string MakeSecret() {
  Digest secret;
  FillRandom(std::as_writable_bytes(std::span(secret.bytes)));
  return secret.Hex();
}

/// "K7QF-29PM": letters and digits that look like no other.
std::string MakeCode() {
  constexpr std::string_view kLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
  std::string code;
  for (std::uint64_t random = RandomU64(), i = 0; i < 8; ++i, random /= kLetters.size()) {
    if (i == 4) code += '-';
    code += kLetters[random % kLetters.size()];
  }
  return code;
}

HttpAnswer LoginAnswer(const std::string& code, const std::string& user) {
  return {kHttpOk, kJson,
          std::make_shared<const std::string>(DumpJson({{"code", code}, {"user", user}}))};
}

struct Browser {
  std::string code;
  std::int64_t since_ns = 0;  ///< it got the code, or its user
  std::optional<PeerIdentity> user;

  bool IsKnown() const {
    const std::int64_t lasts = user ? Dashboard::kUserLastsSeconds : Dashboard::kCodeLastsSeconds;
    return SteadyNowNs() - since_ns < lasts * kNsInSecond;
  }
};

class Pages final : public Dashboard {
 public:
  explicit Pages(Look look) : look_(std::move(look)) {}

  Status Listen(std::string_view place, const std::string& tls) {
    PB_ASSIGN_OR_RETURN(
        http_, HttpListener::Open("--dashboard", place, tls,
                                  [this](const auto& request) { return Answer(request); }));
    return absl::OkStatus();
  }
  const std::string& url() const override { return http_->url(); }
  Status Admit(std::string_view code, const PeerIdentity& identity) override;
  void KeepShares(const std::vector<protocol::TeamRow>& rows) override;
  void KeepKeys(const std::function<bool(const std::string& key)>& valid) override;

 private:
  struct View {
    std::int64_t made_ns = 0;
    std::shared_ptr<const std::string> text;
  };

  HttpAnswer Answer(const HttpRequest& request);
  HttpAnswer Login(const HttpRequest& request);
  HttpAnswer ShowLogin(const HttpRequest& request);
  HttpAnswer ShowCluster(const HttpRequest& request);
  /// Null when it is not known, or too old. With browsers_mutex_ held.
  const Browser* Find(std::string_view secret) const;
  /// With browsers_mutex_ held.
  void MakeRoom();
  std::shared_ptr<const std::string> ViewFor(const PeerIdentity& identity);

  const Look look_;
  std::mutex browsers_mutex_;
  std::map<std::string, Browser> browsers_;  ///< by secret; guarded by browsers_mutex_
  std::mutex views_mutex_;
  std::map<std::string, View> views_;   ///< by key; guarded by views_mutex_
  std::mutex held_mutex_;               ///< nobody waits for the loop with it
  HeldInHour held_;                     ///< guarded by held_mutex_
  std::unique_ptr<HttpListener> http_;  ///< its threads use all above
};

HttpAnswer Pages::Answer(const HttpRequest& request) {
  if (request.path == "/login" && request.method == "POST") return Login(request);
  const auto file = std::find_if(kFiles.begin(), kFiles.end(),
                                 [&](const File& one) { return one.path == request.path; });
  const bool is_cluster = request.path == "/cluster", is_login = request.path == "/login";
  if (file == kFiles.end() && !is_cluster && !is_login) return {kHttpNotFound};
  if (request.method != "GET") return {kHttpNotAllowed};
  if (is_cluster) return ShowCluster(request);
  if (is_login) return ShowLogin(request);
  return {kHttpOk, file->type, std::make_shared<const std::string>(file->text)};
}

/// Forgets this browser's user, too: it is how one logs out.
HttpAnswer Pages::Login(const HttpRequest& request) {
  if (!request.from_own_page) return {kHttpForbidden};
  const std::lock_guard lock(browsers_mutex_);
  browsers_.erase(std::string(request.session));
  MakeRoom();
  Browser browser{MakeCode(), SteadyNowNs(), std::nullopt};
  HttpAnswer answer = LoginAnswer(browser.code, "");
  answer.session = MakeSecret();
  browsers_.emplace(answer.session, std::move(browser));
  return answer;
}

void Pages::MakeRoom() {
  std::erase_if(browsers_, [](const auto& entry) { return !entry.second.IsKnown(); });
  if (browsers_.size() < kMostBrowsers) return;
  browsers_.erase(
      std::min_element(browsers_.begin(), browsers_.end(), [](const auto& left, const auto& right) {
        const auto rank = [](const Browser& one) {
          return std::pair(one.user.has_value(), one.since_ns);
        };
        return rank(left.second) < rank(right.second);
      }));
}

const Browser* Pages::Find(std::string_view secret) const {
  const auto found = browsers_.find(std::string(secret));
  const bool is_known = found != browsers_.end() && found->second.IsKnown();
  return is_known ? &found->second : nullptr;
}

HttpAnswer Pages::ShowLogin(const HttpRequest& request) {
  const std::lock_guard lock(browsers_mutex_);
  const Browser* const browser = Find(request.session);
  if (browser == nullptr) return LoginAnswer("", "");
  return browser->user ? LoginAnswer("", browser->user->key_name) : LoginAnswer(browser->code, "");
}

HttpAnswer Pages::ShowCluster(const HttpRequest& request) {
  PeerIdentity user;
  {
    const std::lock_guard lock(browsers_mutex_);
    const Browser* const browser = Find(request.session);
    if (browser == nullptr || !browser->user) return {kHttpUnauthorized};
    user = *browser->user;
  }
  auto text = ViewFor(user);
  if (text == nullptr) return {kHttpUnavailable};
  return {kHttpOk, kJson, std::move(text)};
}

std::shared_ptr<const std::string> Pages::ViewFor(const PeerIdentity& identity) {
  const std::lock_guard one_at_a_time(views_mutex_);
  const std::int64_t now = SteadyNowNs();
  std::erase_if(views_, [&](const auto& entry) {
    return now - entry.second.made_ns >= kViewAgeMs * kNsInMs;
  });
  const auto known = views_.find(identity.key_name);
  if (known != views_.end()) return known->second.text;
  const std::optional<Seen> seen = look_(identity);
  if (!seen) return nullptr;
  HeldInHour held;
  {
    const std::lock_guard lock(held_mutex_);
    held = held_;
  }
  auto text = std::make_shared<const std::string>(
      ViewOf(*seen, held, identity.key_name, WallClockSeconds()));
  views_[identity.key_name] = {SteadyNowNs(), text};
  return text;
}

Status Pages::Admit(std::string_view code, const PeerIdentity& identity) {
  const std::lock_guard lock(browsers_mutex_);
  for (auto& [secret, browser] : browsers_) {
    if (browser.code != code || browser.user || !browser.IsKnown()) continue;
    browser.user = identity;
    browser.since_ns = SteadyNowNs();
    return absl::OkStatus();
  }
  return NotFound("admit browser: no browser shows the code ", code,
                  " now: take the one that the page shows");
}

void Pages::KeepShares(const std::vector<protocol::TeamRow>& rows) {
  HeldInHour held;
  const std::lock_guard lock(held_mutex_);
  for (const protocol::TeamRow& row : rows) {
    if (!row.user.empty()) continue;
    std::deque<std::uint64_t>& past = held[row.team] = std::move(held_[row.team]);
    past.push_back(row.held_cpu_millis);
    if (past.size() > kMinutesKept) past.pop_front();
  }
  held_.swap(held);  // teams that are gone are forgotten
}

void Pages::KeepKeys(const std::function<bool(const std::string& key)>& valid) {
  const std::lock_guard lock(browsers_mutex_);
  std::erase_if(browsers_, [&](const auto& entry) {
    return entry.second.user && !valid(entry.second.user->key_name);
  });
}

}  // namespace

StatusOr<std::unique_ptr<Dashboard>> Dashboard::Open(std::string_view place, const std::string& tls,
                                                     Look look) {
  auto pages = std::make_unique<Pages>(std::move(look));
  PB_RETURN_IF_ERROR(pages->Listen(place, tls));
  return pages;
}

}  // namespace patchbay::scheduler
