// patchbay serve-ring: the client process of a trainer in another language. It opens runs, owns
// their streams and hands their rings to the process that started it, over a SOCK_SEQPACKET socket
// whose messages are JSON objects of at most kMessageBytes:
//
//   {"op": "open", ...}    opens the run in place of the one before: a description with the shared
//                          words (runtime/model/stream/handover.h), then "ring" with the ring's
//                          memfd; "device": "GPU-..." asks for slots on that GPU
//                          "leave": true, leaves a cluster that is stopping
//                          of a run of `patchbay map`: "map": true; with "job": N again, as another
//                          consumer of the same run
//   {"op": "finish", "unit": N}   that unit is done; with "reason": it failed alone
//   {"op": "progress"}     units of the run: "finished", "failed": [[unit, reason], ...]
//   {"op": "images", "first": N}   rows of the images from N on, as many as fit
//   {"op": "close"}        leaves the stream and ends; with slots on a GPU once the link is closed
//                          everywhere: the memory is this process's
//
// Each is answered by {"ok": true, ...} or {"ok": false, "code", "config", "text"}. It ends with
// its owner, however that ends.
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/client/handover.h"
#include "runtime/client/open_run.h"
#include "runtime/core/log.h"
#include "runtime/memory/gpu.h"
#include "runtime/model/stream/limits.h"
#include "runtime/wire/data/exit_watch.h"
#include "runtime/wire/data/sockets.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMessageBytes = 64u << 10;
constexpr std::size_t kImagesPerMessage = 200, kMostPathBytes = 32u << 10;
constexpr int kLookEveryMs = 500;  ///< after the owner, where the kernel does not tell

/// The process that started this one, and the socket to it.
class Owner {
 public:
  Owner(int link, data::ExitWatch watch) : link_(link), watch_(std::move(watch)) {}

  bool Lives() const {
    pollfd wait{link_, POLLRDHUP, 0};
    const bool hung_up = poll(&wait, 1, 0) > 0 && (wait.revents & (POLLHUP | POLLRDHUP)) != 0;
    return !hung_up && !watch_.Ended();
  }

  /// The next command; Unavailable once the owner is gone.
  StatusOr<Json> Receive() const {
    const bool tells = watch_.proof() == data::ExitProof::kPidfd;
    for (;;) {
      std::array<pollfd, 2> waits = {{{link_, POLLIN | POLLRDHUP, 0}, {watch_.fd(), POLLIN, 0}}};
      (void)poll(waits.data(), tells ? 2 : 1, tells ? -1 : kLookEveryMs);
      if ((waits[0].revents & POLLIN) != 0) break;
      if (!Lives()) return Unavailable("serve ring: the owner is gone");
    }
    std::vector<std::byte> buffer(kMessageBytes);
    PB_ASSIGN_OR_RETURN(const std::size_t size, data::ReceiveMessage(link_, buffer));
    if (size == 0) return Unavailable("serve ring: the owner is gone");
    return ParseJson({reinterpret_cast<const char*>(buffer.data()), size}, "command");
  }

  Status Send(const Json& message, int fd = -1) const {
    const std::string text = DumpJson(message);
    return data::SendMessage(link_, std::as_bytes(std::span(text)), fd);
  }

  Status SendError(const Status& status) const {
    Json answer = client::DescribeError(status);
    answer["ok"] = false;
    return Send(answer);
  }

 private:
  const int link_;
  const data::ExitWatch watch_;
};

/// Members of an "open" command, each with the type that is meant.
class OpenCommand {
 public:
  explicit OpenCommand(const Json& command) : command_(command) {}

  StatusOr<std::string> Text(const char* key) const {
    return command_.contains(key) ? JsonString(command_, key, "open") : std::string();
  }
  StatusOr<std::uint32_t> Number(const char* key, std::uint32_t silent, std::uint32_t most) const {
    if (!command_.contains(key)) return silent;
    PB_ASSIGN_OR_RETURN(const std::uint64_t value, JsonCount(command_, key, "open"));
    if (value > most) {
      return client::ConfigFault(StrCat("open run: ", key, " ", value, ": at most ", most));
    }
    return static_cast<std::uint32_t>(value);
  }
  StatusOr<std::vector<std::string>> Texts(const char* key) const {
    std::vector<std::string> texts;
    if (!command_.contains(key)) return texts;
    for (const Json& text : command_[key]) {
      if (!text.is_string()) return InvalidArgument("open: ", key, ": not text");
      texts.push_back(text.get<std::string>());
    }
    return texts;
  }
  const Json& json() const { return command_; }

 private:
  const Json& command_;
};

class ServeRing final : public Command {
 public:
  std::vector<Argument> Arguments() override;
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  Status Answer(const Json& command);
  Status Open(const Json& command);
  StatusOr<client::RunOptions> OptionsOf(const OpenCommand& command) const;
  Status HandOver();
  Status SendImages(const Json& command) const;
  Status FinishUnit(const Json& command);
  Status SendProgress();
  void Leave();
  void AwaitRetired();
  [[noreturn]] void EndWithOwner();

  std::int64_t link_ = 3, owner_pid_ = 0;
  Session* session_ = nullptr;
  std::optional<Owner> owner_;
  std::shared_ptr<client::Cluster> cluster_;
  std::unique_ptr<client::Run> run_;
  std::unique_ptr<client::RingHandover> handover_;  ///< ends before run_
  std::vector<client::RetiredRing> retired_;
};

std::vector<Argument> ServeRing::Arguments() {
  Argument link{"--link", "FD", "the socket to the process that wants the ring", &link_};
  link.min = 3;
  link.max = 1'048'576;
  Argument owner{"--owner", "PID", "the process that this one ends with", &owner_pid_};
  owner.required = true;
  owner.min = 1;
  return {link, owner};
}

StatusOr<ExitCode> ServeRing::Run(Session& session) {
  session_ = &session;
  // Both are for the trainer, which closes the link.
  (void)signal(SIGINT, SIG_IGN);
  (void)signal(SIGTERM, SIG_IGN);
  PB_ASSIGN_OR_RETURN(data::ExitWatch watch, data::ExitWatch::Of(static_cast<pid_t>(owner_pid_)));
  owner_.emplace(static_cast<int>(link_), std::move(watch));
  for (;;) {
    const StatusOr<Json> command = owner_->Receive();
    if (absl::IsUnavailable(command.status())) EndWithOwner();
    PB_RETURN_IF_ERROR(command.status());
    const StatusOr<std::string> op = JsonString(*command, "op", "command");
    if (op.ok() && *op == "close") {
      Leave();
      cluster_.reset();
      (void)owner_->Send({{"ok", true}});
      while (!retired_.empty() && owner_->Lives()) AwaitRetired();
      return ExitCode::kDone;
    }
    const Status answered = op.ok() ? Answer(*command) : op.status();
    if (!answered.ok() && !owner_->SendError(answered).ok()) EndWithOwner();
  }
}

Status ServeRing::Answer(const Json& command) {
  const std::string op = command["op"].get<std::string>();
  if (op == "open") return Open(command);
  if (op == "images") return SendImages(command);
  if (op == "finish" || op == "progress") {
    if (run_ == nullptr) return FailedPrecondition(op, ": no run is open");
    return op == "finish" ? FinishUnit(command) : SendProgress();
  }
  return InvalidArgument("serve ring: unknown command '", op, "'");
}

StatusOr<client::RunOptions> ServeRing::OptionsOf(const OpenCommand& command) const {
  client::RunOptions options;
  PB_ASSIGN_OR_RETURN(options.source.file, command.Text("file"));
  if (command.json().contains("values")) options.source.values = command.json()["values"];
  PB_ASSIGN_OR_RETURN(options.source.overrides, command.Texts("overrides"));
  PB_ASSIGN_OR_RETURN(options.split, command.Text("split"));
  if (command.json().contains("augment")) {
    PB_ASSIGN_OR_RETURN(options.augment, JsonBool(command.json(), "augment", "open"));
  }
  if (command.json().contains("leave")) {
    PB_ASSIGN_OR_RETURN(options.leave_when_stopping, JsonBool(command.json(), "leave", "open"));
  }
  if (command.json().contains("map")) {
    PB_ASSIGN_OR_RETURN(options.map, JsonBool(command.json(), "map", "open"));
  }
  if (command.json().contains("job")) {
    PB_ASSIGN_OR_RETURN(options.job, JsonCount(command.json(), "job", "open"));
  }
  PB_ASSIGN_OR_RETURN(options.name, command.Text("name"));
  PB_ASSIGN_OR_RETURN(options.resume_token, command.Text("resume_token"));
  PB_ASSIGN_OR_RETURN(options.data_policy, command.Text("data_policy"));
  PB_ASSIGN_OR_RETURN(const std::string device, command.Text("device"));
  if (!device.empty()) {
    options.memory = client::SlotMemory::kDevice;
    PB_ASSIGN_OR_RETURN(options.device, memory::GpuIndexOf(device));
  }
  PB_ASSIGN_OR_RETURN(options.data_listen, command.Text("data_listen"));
  PB_ASSIGN_OR_RETURN(options.world_size, command.Number("world_size", 1, kMaxWorldSize));
  PB_ASSIGN_OR_RETURN(options.rank, command.Number("rank", 0, kMaxWorldSize));
  OwnClusterArguments own;
  PB_ASSIGN_OR_RETURN(const std::uint32_t cpus, command.Number("cpus", 0, kMaxWorldSize));
  if (cpus > 0) own.cpus = cpus;
  options.cluster = ClusterOptionsOf(*session_, &own);
  PB_ASSIGN_OR_RETURN(const std::string cluster, command.Text("cluster"));
  if (!cluster.empty()) options.cluster.key_file = cluster;
  PB_ASSIGN_OR_RETURN(options.cluster.share, command.Text("share"));
  options.cluster.keep_waiting = [this] { return owner_->Lives(); };
  options.open_cluster = cluster_;
  return options;
}

Status ServeRing::Open(const Json& command) {
  Leave();
  PB_ASSIGN_OR_RETURN(const client::RunOptions options, OptionsOf(OpenCommand(command)));
  PB_ASSIGN_OR_RETURN(run_, client::OpenRun(options));
  cluster_ = run_->cluster;
  const Status handed = HandOver();
  if (!handed.ok()) run_->Abandon();
  return handed;
}

Status ServeRing::HandOver() {
  PB_ASSIGN_OR_RETURN(Json description, client::DescribeRing(*run_));
  PB_ASSIGN_OR_RETURN(handover_, client::RingHandover::Start(*run_));
  description["ok"] = true;
  PB_RETURN_IF_ERROR(owner_->Send(description, handover_->control_fd()));
  return owner_->Send({{"ok", true}}, run_->stream->ring_memory().host_fd());
}

Status ServeRing::SendImages(const Json& command) const {
  PB_ASSIGN_OR_RETURN(const std::uint64_t first, JsonCount(command, "first", "images"));
  if (run_ == nullptr) return FailedPrecondition("images: no run is open");
  std::size_t count = kImagesPerMessage;
  Json rows = client::DescribeImages(*run_, first, count);
  while (count > 1 && DumpJson(rows).size() > kMostPathBytes) {
    count /= 2;
    rows = client::DescribeImages(*run_, first, count);
  }
  return owner_->Send({{"ok", true}, {"rows", std::move(rows)}});
}

Status ServeRing::FinishUnit(const Json& command) {
  PB_ASSIGN_OR_RETURN(const std::uint64_t unit, JsonCount(command, "unit", "finish"));
  Outcome outcome;
  if (command.contains("reason")) {
    PB_ASSIGN_OR_RETURN(outcome.cause, JsonString(command, "reason", "finish"));
    outcome.code = static_cast<std::int32_t>(absl::StatusCode::kFailedPrecondition);
  }
  if (const Status done = run_->stream->FinishUnit(unit, outcome); !done.ok()) {
    return run_->Explain(done);
  }
  return owner_->Send({{"ok", true}});
}

Status ServeRing::SendProgress() {
  PB_ASSIGN_OR_RETURN(const protocol::JobRow row, cluster_->client().DescribeJob(run_->job));
  Json failed = Json::array();
  std::size_t bytes = 0;
  for (const protocol::FailedTask& task : row.failed) {
    if (task.group == 0) continue;
    std::string text(MessageOf(run_->Explain(StatusOf(task.outcome))));
    bytes += text.size();
    if (bytes > kMostPathBytes) text.clear();
    failed.push_back({task.group - 1, std::move(text)});
  }
  return owner_->Send({{"ok", true}, {"finished", row.weight_done}, {"failed", std::move(failed)}});
}

/// Detaches from the stream as a rank that is done here; its job may end. A ring in device memory
/// stays until its consumer has left it.
void ServeRing::Leave() {
  if (run_ != nullptr && handover_ != nullptr && run_->stream->ring_memory().device() != nullptr) {
    retired_.push_back(handover_->Retire());
  }
  std::erase_if(retired_, [](client::RetiredRing& ring) { return ring.Done(); });
  handover_.reset();
  if (run_ == nullptr) return;
  if (const Status detached = run_->stream->Detach(); !detached.ok()) {
    LogWarning(Describe(detached));
  }
  run_.reset();
}

void ServeRing::AwaitRetired() {
  (void)poll(nullptr, 0, kLookEveryMs);
  std::erase_if(retired_, [](client::RetiredRing& ring) { return ring.Done(); });
}

/// The owner ended without closing: its rank may return, so it does not leave the stream. A job
/// that no other rank may stream is cancelled; an embedded cluster ends with this process.
void ServeRing::EndWithOwner() {
  if (run_ != nullptr && run_->submitted && !cluster_->embedded()) {
    handover_.reset();
    run_->Abandon();
  }
  _exit(static_cast<int>(ExitCode::kFailed));
}

}  // namespace

std::unique_ptr<Command> MakeServeRing() { return std::make_unique<ServeRing>(); }

}  // namespace patchbay::cli
