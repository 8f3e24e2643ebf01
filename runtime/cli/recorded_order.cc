#include "runtime/cli/recorded_order.h"

#include "runtime/base/file.h"
#include "runtime/base/strings.h"

namespace patchbay::cli {
namespace {

constexpr char kWhat[] = "recorded order";

std::string Folder(const client::Environment& environment) { return environment.home + "/jobs"; }

std::string File(const client::Environment& environment, const protocol::JobRow& job) {
  return StrCat(Folder(environment), "/", job.job, "-", job.submitted_at, ".json");
}

StatusOr<SlideOrder> Parse(const std::string& text) {
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kWhat));
  SlideOrder order;
  PB_ASSIGN_OR_RETURN(order.kind, JsonString(json, "kind", kWhat));
  PB_ASSIGN_OR_RETURN(order.staging, JsonString(json, "staging", kWhat));
  PB_ASSIGN_OR_RETURN(order.out, JsonString(json, "out", kWhat));
  for (const auto& [key, list] :
       {std::pair("sources", &order.sources), std::pair("slides", &order.slides)}) {
    PB_ASSIGN_OR_RETURN(const Json* paths, JsonMember(json, key, kWhat));
    for (const Json& path : *paths) {
      if (!path.is_string()) return absl::InvalidArgumentError(StrCat(kWhat, ": not paths"));
      list->push_back(path.get<std::string>());
    }
  }
  return order;
}

}  // namespace

Status RecordOrder(const client::Environment& environment, const protocol::JobRow& job,
                   const SlideOrder& order) {
  PB_RETURN_IF_ERROR(MakeDirectories(Folder(environment), 0700));
  const Json json = {{"kind", order.kind},
                     {"staging", order.staging},
                     {"out", order.out},
                     {"sources", order.sources},
                     {"slides", order.slides}};
  return ReplaceFile(File(environment, job), AsBytes(DumpJson(json)), 0600);
}

std::optional<SlideOrder> RecordedOrder(const client::Environment& environment,
                                        const protocol::JobRow& job) {
  const StatusOr<std::string> text = ReadFile(File(environment, job), kMaxJsonBytes);
  if (!text.ok()) return std::nullopt;
  StatusOr<SlideOrder> order = Parse(*text);
  if (!order.ok() || order->kind != job.kind) return std::nullopt;
  order->started_ns = SteadyNowNs();
  return *std::move(order);
}

}  // namespace patchbay::cli
