#include "scheduler/dashboard/view.h"

#include <map>
#include <utility>

#include "runtime/core/outcome_pseudonym.h"
#include "runtime/format/json/json.h"
#include "scheduler/state/job_table.h"

namespace patchbay::scheduler {
namespace {

constexpr std::size_t kFailedSlidesShown = 200;

bool IsOpenStream(const protocol::JobRow& job) {
  return job.patches_total != 0 && !IsEnded(job.state);
}

Json StreamToJson(const protocol::JobRow& job) {
  const protocol::StreamCourse& course = job.course;
  return {{"job", job.job},
          {"name", job.name},
          {"by", job.submitter},
          {"rate", 1e-3 * static_cast<double>(course.patches_per_ks)},
          {"stalled", course.stalled},
          {"hour", course.hour},
          {"stage", course.stage},
          {"node", course.node},
          {"waits", job.waits_for.empty() ? job.cause : job.waits_for},
          {"held", job.on_hold},
          {"unattended", job.unattended_ms != 0},
          {"made", job.patches_made}};
}

Json JobToJson(const protocol::JobRow& job) {
  Json row = {{"job", job.job},
              {"kind", job.kind},
              {"name", job.name},
              {"by", job.submitter},
              {"state", job.on_hold && !IsEnded(job.state) ? "held" : NameOf(job.state)},
              {"tasks", job.tasks_total},
              {"done", job.tasks_done},
              {"failed", job.tasks_failed},
              {"at", job.submitted_at},
              {"end", job.finished_at}};
  if (!job.team.empty()) row["team"] = job.team;
  if (IsEnded(job.state)) return row;
  row["cause"] = job.cause;
  row["cores"] = {job.held_cpu_millis, job.wanted_cpu_millis};
  row["weight"] = {job.weight_done, job.weight_total};
  return row;
}

/// Slides by the pseudonym that their results would have; by their number in the job alone where
/// the content could not be read, or the job keeps names.
void AddFailed(const protocol::JobRow& job, Json& slides) {
  for (const protocol::FailedTask& task : job.failed) {
    if (slides.size() >= kFailedSlidesShown) return;
    if (task.group == 0) continue;
    slides.push_back({{"job", job.job},
                      {"slide", task.group - 1},
                      {"pseudonym", PseudonymIn(task.outcome)},
                      {"why", TextOf(task.outcome)}});
  }
}

Json NodesToJson(const protocol::ClusterDescribed& cluster) {
  std::map<std::string, std::size_t> busy;
  for (const protocol::WorkerRow& worker : cluster.workers) {
    busy[worker.node] += worker.leases != 0 ? 1 : 0;
  }
  Json nodes = Json::array();
  for (const protocol::NodeRow& node : cluster.nodes) {
    nodes.push_back({{"node", node.node},
                     {"state", node.state},
                     {"cores", node.cpus},
                     {"workers", node.workers},
                     {"busy", busy[node.node]},
                     {"gpus", node.gpus.size()},
                     {"why", node.drain_reason}});
  }
  return nodes;
}

Json TeamsToJson(const protocol::TeamsDescribed& described, const HeldInHour& held) {
  Json teams = Json::array();
  for (const protocol::TeamRow& row : described.rows) {
    if (!row.user.empty()) continue;
    const auto past = held.find(row.team);
    teams.push_back({{"team", row.team},
                     {"guaranteed", row.guaranteed_cpu_millis},
                     {"most", row.most_cpu_millis},
                     {"wanted", row.wanted_cpu_millis},
                     {"held", row.held_cpu_millis},
                     {"hour", past == held.end() ? std::deque<std::uint64_t>() : past->second}});
  }
  return teams;
}

}  // namespace

std::string ViewOf(const Seen& seen, const HeldInHour& held, const std::string& viewer,
                   std::int64_t now) {
  const protocol::ClusterDescribed& cluster = seen.cluster;
  Json streams = Json::array(), jobs = Json::array(), slides = Json::array();
  for (const protocol::JobRow& job : cluster.jobs) {
    if (IsOpenStream(job)) {
      streams.push_back(StreamToJson(job));
    } else {
      jobs.push_back(JobToJson(job));
    }
    AddFailed(job, slides);
  }
  Json failures = Json::array();
  for (const auto& failure : cluster.failures) {
    failures.push_back({{"job", failure.job},
                        {"at", failure.at},
                        {"text", failure.text},
                        {"why", TextOf(failure.outcome)}});
  }
  return DumpJson({{"now", now},
                   {"viewer", viewer},
                   {"free", cluster.state_free_bytes},
                   {"nodes", NodesToJson(cluster)},
                   {"streams", streams},
                   {"jobs", jobs},
                   {"teams", TeamsToJson(seen.teams, held)},
                   {"slides", slides},
                   {"failures", failures}});
}

}  // namespace patchbay::scheduler
