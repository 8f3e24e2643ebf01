#include "scheduler/metrics/metrics_listener.h"

#include <mutex>
#include <utility>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/wire/control/address.h"
#include "runtime/wire/control/keys.h"
#include "scheduler/http/http_listener.h"
#include "scheduler/metrics/exposition.h"

namespace patchbay::scheduler {
namespace {

constexpr char kPath[] = "/metrics";

/// The token without what an editor puts behind it.
StatusOr<std::string> ReadToken(const std::string& path) {
  PB_ASSIGN_OR_RETURN(std::string token, control::ReadPrivateFile(path));
  token.erase(token.find_last_not_of(" \r\n") + 1);
  const bool is_word = token.find_first_of(" \t\r\n") == token.npos;
  if (is_word && token.size() >= MetricsListener::kFewestTokenBytes) return token;
  return InvalidArgument("read token: ", path, ": expected one word of ",
                         MetricsListener::kFewestTokenBytes, " or more characters");
}

class Listener final : public MetricsListener {
 public:
  Status Listen(const Options& options);
  const std::string& url() const override { return url_; }
  void Publish(Sample&& sample) override {
    auto published = std::make_shared<const Sample>(std::move(sample));
    const std::lock_guard lock(sample_mutex_);
    sample_.swap(published);
  }

 private:
  HttpAnswer Answer(const HttpRequest& request) {
    if (!token_.empty() && Sha256Of(request.token) != Sha256Of(token_)) return {kHttpUnauthorized};
    if (request.path != kPath) return {kHttpNotFound};
    if (request.method != "GET") return {kHttpNotAllowed};
    return {kHttpOk, "text/plain; version=0.0.4; charset=utf-8", Page()};
  }
  /// Renders a sample once, however many readers there are.
  std::shared_ptr<const std::string> Page();

  std::string url_, token_;
  std::mutex sample_mutex_;
  std::shared_ptr<const Sample> sample_ = std::make_shared<Sample>();  // guarded by sample_mutex_
  std::mutex page_mutex_;
  std::shared_ptr<const Sample> rendered_;   // guarded by page_mutex_
  std::shared_ptr<const std::string> page_;  // guarded by page_mutex_
  std::unique_ptr<HttpListener> http_;       ///< its threads use all above
};

Status Listener::Listen(const Options& options) {
  PB_RETURN_IF_ERROR(
      control::ParsePagePlace("--metrics", options.place,
                              {{"--tls", options.tls}, {"--metrics-token", options.token_file}})
          .status());
  if (!options.token_file.empty()) {
    PB_ASSIGN_OR_RETURN(token_, ReadToken(options.token_file));
  }
  PB_ASSIGN_OR_RETURN(http_,
                      HttpListener::Open("--metrics", options.place, options.tls,
                                         [this](const auto& request) { return Answer(request); }));
  url_ = StrCat(http_->url(), kPath);
  return absl::OkStatus();
}

std::shared_ptr<const std::string> Listener::Page() {
  const std::lock_guard one_at_a_time(page_mutex_);
  std::shared_ptr<const Sample> sample;
  {
    const std::lock_guard lock(sample_mutex_);
    sample = sample_;
  }
  if (sample != rendered_) {
    page_ = std::make_shared<const std::string>(Render(*sample));
    rendered_ = std::move(sample);
  }
  return page_;
}

}  // namespace

StatusOr<std::unique_ptr<MetricsListener>> MetricsListener::Open(const Options& options) {
  auto listener = std::make_unique<Listener>();
  PB_RETURN_IF_ERROR(listener->Listen(options));
  return listener;
}

}  // namespace patchbay::scheduler
