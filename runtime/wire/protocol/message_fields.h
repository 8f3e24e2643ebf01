// Every field of every message, once. The codec (codec_fields.h), JSON of messages
// (runtime/format/json/described.h), their equality and printing in tests, and the test that no
// field is forgotten are made from these lists.
#pragma once

#include <type_traits>

#include "runtime/core/fields.h"
#include "runtime/core/outcome_fields.h"
#include "runtime/wire/protocol/messages.h"

// One list a struct, F(member, name of its accessors on the wire), in the order in which fields are
// written: that order decides bytes. clang-format off: one line a struct.
// clang-format off

#define PATCHBAY_LEASE_NUMBER_FIELDS(F) F(incarnation, Incarnation) F(counter, Counter)
#define PATCHBAY_TASK_ID_FIELDS(F) F(job, Job) F(index, Index)
#define PATCHBAY_SHARD_ID_FIELDS(F) F(epoch, Epoch) F(batch, Batch) F(rank, Rank) \
  F(shard, Shard)
#define PATCHBAY_GRANT_FIELDS(F) F(slot, Slot) F(slot_generation, SlotGeneration) \
  F(place, Place) F(count, Count)
#define PATCHBAY_STREAM_GEOMETRY_FIELDS(F) F(patches_per_epoch, PatchesPerEpoch) \
  F(global_batch, GlobalBatch) F(world_size, WorldSize) F(shard_patches, ShardPatches) \
  F(tail, Tail) F(units, )
#define PATCHBAY_UNIT_RUN_FIELDS(F) F(patches_per_unit, PatchesPerUnit) F(units, Units)
#define PATCHBAY_ASSIGNED_UNIT_FIELDS(F) F(epoch, Epoch) F(unit, Unit)
#define PATCHBAY_RESOURCES_FIELDS(F) F(cpu_millis, CpuMillis) F(gpus, Gpus) \
  F(memory_bytes, MemoryBytes)
#define PATCHBAY_TASK_SPEC_FIELDS(F) F(op, Op) F(payload, Payload) F(resources, Resources) \
  F(depends_on, DependsOn) F(after_failures, AfterFailures) F(group, Group) F(label, Label) \
  F(weight, Weight)
#define PATCHBAY_WORK_COST_FIELDS(F) F(cpu_us, CpuUs) F(gpu_us, GpuUs) F(bytes_read, BytesRead) \
  F(bytes_delivered, BytesDelivered)
#define PATCHBAY_STAGE_TIMES_FIELDS(F) F(storage_us, StorageUs) F(decode_us, DecodeUs) \
  F(transform_us, TransformUs) F(transfer_us, TransferUs)
#define PATCHBAY_GPU_FIELDS(F) F(uuid, Uuid) F(name, Name) F(memory_bytes, MemoryBytes)
#define PATCHBAY_HELD_LEASE_FIELDS(F) F(lease, Lease) F(is_shard, ) F(task, Task) F(stream, ) \
  F(shard, Shard)
#define PATCHBAY_TASK_LEASE_FIELDS(F) F(lease, Lease) F(task, Task) F(op, Op) \
  F(payload, Payload) F(inputs, Inputs) F(manifest, Manifest) F(submitter, Submitter) \
  F(read_prefixes, ReadPrefixes) F(write_prefixes, WritePrefixes) F(inputs_apart, InputsApart) \
  F(planning, Planning)
#define PATCHBAY_SHARD_LEASE_FIELDS(F) F(lease, Lease) F(stream, Stream) F(shard, Shard) \
  F(first_ordinal, FirstOrdinal) F(grant, Grant)
#define PATCHBAY_RENEW_LEASES_ITEM_FIELDS(F) F(lease, Lease) F(progress, Progress) \
  F(cpu_us, CpuUs)
#define PATCHBAY_TASKS_FINISHED_ITEM_FIELDS(F) F(lease, Lease) F(task, Task) F(outcome, Outcome) \
  F(result, Result) F(spawned, Spawned) F(progress_bytes, ProgressBytes) \
  F(result_offset, ResultOffset) F(cost, Cost)
#define PATCHBAY_SHARDS_RETURNED_ITEM_FIELDS(F) F(lease, Lease) F(stream, Stream) \
  F(shard, Shard) F(outcome, Outcome) F(cost, Cost) F(stages, Stages)
#define PATCHBAY_TRAINER_ENDPOINT_FIELDS(F) F(rank, Rank) F(host_identity, HostIdentity) \
  F(node, Node) F(socket_name, SocketName) F(remote_address, RemoteAddress) \
  F(stream_secret, StreamSecret)
#define PATCHBAY_SLOT_ROW_FIELDS(F) F(slot, Slot) F(state, State) F(generation, Generation) \
  F(epoch, Epoch) F(batch, Batch) F(counted, Counted)
#define PATCHBAY_SHARDS_COUNTED_ITEM_FIELDS(F) F(lease, Lease) F(shard, Shard)
#define PATCHBAY_PEERS_DROPPED_ITEM_FIELDS(F) F(address, Address) F(reason, Reason) \
  F(times, Times) F(last_at, LastAt)
#define PATCHBAY_FAILED_TASK_FIELDS(F) F(task, Task) F(label, Label) F(outcome, Outcome) \
  F(group, Group)
#define PATCHBAY_STREAM_COURSE_FIELDS(F) F(patches_per_ks, PatchesPerKs) F(stalled, Stalled) \
  F(stage, Stage) F(node, Node) F(hour, Hour)
#define PATCHBAY_JOB_ROW_FIELDS(F) F(job, Job) F(kind, Kind) F(name, Name) \
  F(submitter, Submitter) F(state, State) F(priority, Priority) F(submitted_at, SubmittedAt) \
  F(finished_at, FinishedAt) F(tasks_total, TasksTotal) F(tasks_done, TasksDone) \
  F(tasks_failed, TasksFailed) F(tasks_running, TasksRunning) F(weight_total, WeightTotal) \
  F(weight_done, WeightDone) F(progress_bytes, ProgressBytes) F(failed, Failed) \
  F(waits_for, WaitsFor) F(unattended_ms, UnattendedMs) F(on_hold, OnHold) \
  F(wanted_cpu_millis, WantedCpuMillis) F(held_cpu_millis, HeldCpuMillis) F(cause, Cause) \
  F(patches_made, PatchesMade) F(patches_total, PatchesTotal) F(stalled_ms, StalledMs) \
  F(team, Team) F(course, Course)
#define PATCHBAY_JOB_EXPLAINED_FACT_FIELDS(F) F(name, Name) F(text, Text)
#define PATCHBAY_TEAM_ROW_FIELDS(F) F(team, Team) F(user, User) \
  F(guaranteed_cpu_millis, GuaranteedCpuMillis) F(most_cpu_millis, MostCpuMillis) \
  F(weight_millis, WeightMillis) F(wanted_cpu_millis, WantedCpuMillis) \
  F(held_cpu_millis, HeldCpuMillis) F(used_cpu_ms, UsedCpuMs) F(jobs_open, JobsOpen) \
  F(guaranteed_gpus, GuaranteedGpus) F(most_gpus, MostGpus) F(held_gpus, HeldGpus) \
  F(guaranteed_memory_bytes, GuaranteedMemoryBytes) F(most_memory_bytes, MostMemoryBytes) \
  F(held_memory_bytes, HeldMemoryBytes) F(lend_percent, LendPercent)
#define PATCHBAY_USAGE_ROW_FIELDS(F) F(hour, Hour) F(team, Team) F(user, User) F(job, Job) \
  F(counted, Counted) F(wasted, Wasted)
#define PATCHBAY_LOGS_FETCHED_LINE_FIELDS(F) F(sequence, Sequence) F(at, At) F(text, Text) \
  F(outcome, Outcome)
#define PATCHBAY_NODE_ROW_FIELDS(F) F(node, Node) F(state, State) F(cpus, Cpus) \
  F(workers, Workers) F(gpus, Gpus) F(drained_by, DrainedBy) F(drain_reason, DrainReason) \
  F(label, Label)
#define PATCHBAY_WORKER_ROW_FIELDS(F) F(node, Node) F(index, Index) F(leases, Leases) \
  F(pid, Pid) F(state, State) F(tasks_done, TasksDone) F(shards_done, ShardsDone)
#define PATCHBAY_HEARTBEAT_FIELDS(F) F(progress, Progress) F(wait_p50_us, WaitP50Us) \
  F(wait_p99_us, WaitP99Us) F(memory_bytes, MemoryBytes) F(silent, Silent)
#define PATCHBAY_HEARTBEAT_SEEN_FIELDS(F) F(scheduler_incarnation, SchedulerIncarnation)
#define PATCHBAY_REQUEST_FAILED_FIELDS(F) F(outcome, Outcome)
#define PATCHBAY_REGISTER_AGENT_FIELDS(F) F(node, Node) F(host_identity, HostIdentity) \
  F(cpus, Cpus) F(memory_bytes, MemoryBytes) F(gpus, Gpus) \
  F(agent_incarnation, AgentIncarnation) F(host_name, HostName)
#define PATCHBAY_AGENT_REGISTERED_FIELDS(F) F(scheduler_incarnation, SchedulerIncarnation) \
  F(heartbeat_ms, HeartbeatMs)
#define PATCHBAY_REGISTER_WORKER_FIELDS(F) F(node, Node) F(index, Index) F(numerics, Numerics) \
  F(agent_incarnation, AgentIncarnation) F(worker_incarnation, WorkerIncarnation) F(pid, Pid) \
  F(capacity, Capacity) F(held, Held) F(byte_versions, ByteVersions) \
  F(host_identity, HostIdentity)
#define PATCHBAY_WORKER_REGISTERED_FIELDS(F) F(scheduler_incarnation, SchedulerIncarnation) \
  F(lease_ms, LeaseMs)
#define PATCHBAY_LEASES_GRANTED_FIELDS(F) F(tasks, Tasks) F(shards, Shards)
#define PATCHBAY_LEASES_REVOKED_FIELDS(F) F(leases, Leases)
#define PATCHBAY_FETCH_STREAM_FIELDS(F) F(stream, Stream) F(offset, Offset)
#define PATCHBAY_STREAM_DESCRIBED_FIELDS(F) F(stream, Stream) F(plan_digest, PlanDigest) \
  F(plan, Plan) F(manifest, Manifest) F(trainers, Trainers) F(read_prefixes, ReadPrefixes) \
  F(plan_bytes, PlanBytes) F(manifest_bytes, ManifestBytes) F(geometry, Geometry) \
  F(capacity, Capacity)
#define PATCHBAY_RENEW_LEASES_FIELDS(F) F(items, Items)
#define PATCHBAY_LEASES_RENEWED_FIELDS(F) F(unknown, Unknown)
#define PATCHBAY_TASKS_FINISHED_FIELDS(F) F(items, Items)
#define PATCHBAY_TASKS_COMMITTED_FIELDS(F) F(leases, Leases)
#define PATCHBAY_SHARDS_RETURNED_FIELDS(F) F(items, Items)
#define PATCHBAY_WORKER_EXITED_FIELDS(F) F(node, Node) F(index, Index) \
  F(worker_incarnation, WorkerIncarnation) F(wait_status, WaitStatus)
#define PATCHBAY_KILL_WORKER_FIELDS(F) F(index, Index) F(worker_incarnation, WorkerIncarnation)
#define PATCHBAY_ATTACH_TRAINER_FIELDS(F) F(stream, Stream) F(rank, Rank) \
  F(world_size, WorldSize) F(first_epoch, FirstEpoch) F(first_batch, FirstBatch) \
  F(trainer_incarnation, TrainerIncarnation) F(pid, Pid) F(endpoint, Endpoint) F(slots, Slots) \
  F(holders, Holders) F(units, Units)
#define PATCHBAY_TRAINER_ATTACHED_FIELDS(F) F(scheduler_incarnation, SchedulerIncarnation) \
  F(plan_digest, PlanDigest) F(geometry, Geometry)
#define PATCHBAY_ANNOUNCE_SLOTS_FIELDS(F) F(stream, Stream) F(rank, Rank) F(slots, Slots)
#define PATCHBAY_SHARDS_COUNTED_FIELDS(F) F(stream, Stream) F(rank, Rank) F(items, Items)
#define PATCHBAY_FENCE_SHARD_FIELDS(F) F(stream, Stream) F(lease, Lease) F(shard, Shard) \
  F(worker_pid, WorkerPid) F(grant, Grant)
#define PATCHBAY_SHARD_FENCED_FIELDS(F) F(stream, Stream) F(lease, Lease) F(shard, Shard) \
  F(row, Row) F(already_counted, AlreadyCounted)
#define PATCHBAY_STREAM_FAILED_FIELDS(F) F(stream, Stream) F(outcome, Outcome)
#define PATCHBAY_DETACH_TRAINER_FIELDS(F) F(stream, Stream) F(rank, Rank)
#define PATCHBAY_SUBMIT_JOB_FIELDS(F) F(submission_key, SubmissionKey) F(kind, Kind) \
  F(name, Name) F(root, Root) F(manifest, Manifest) F(priority, Priority) \
  F(world_size, WorldSize) F(join, Join) F(waits, Waits)
#define PATCHBAY_JOB_SUBMITTED_FIELDS(F) F(job, Job)
#define PATCHBAY_DESCRIBE_JOBS_FIELDS(F) F(jobs, Jobs) F(before, Before)
#define PATCHBAY_JOBS_DESCRIBED_FIELDS(F) F(jobs, Jobs)
#define PATCHBAY_FETCH_RESULT_FIELDS(F) F(task, Task) F(offset, Offset)
#define PATCHBAY_RESULT_FETCHED_FIELDS(F) F(task, Task) F(state, State) F(result, Result) \
  F(result_bytes, ResultBytes)
#define PATCHBAY_CANCEL_JOB_FIELDS(F) F(job, Job)
#define PATCHBAY_RETRY_JOB_FIELDS(F) F(job, Job)
#define PATCHBAY_JOB_RETRIED_FIELDS(F) F(tasks, Tasks)
#define PATCHBAY_FETCH_LOGS_FIELDS(F) F(job, Job) F(after, After)
#define PATCHBAY_LOGS_FETCHED_FIELDS(F) F(lines, Lines)
#define PATCHBAY_SHUTTING_DOWN_FIELDS(F) F(deadline_ms, DeadlineMs)
#define PATCHBAY_CLUSTER_DESCRIBED_FIELDS(F) F(nodes, Nodes) F(workers, Workers) F(jobs, Jobs) \
  F(peers_dropped, PeersDropped) F(failures, Failures) F(state_free_bytes, StateFreeBytes)
#define PATCHBAY_CLUSTER_DESCRIBED_FAILURE_FIELDS(F) F(job, Job) F(at, At) F(text, Text) \
  F(outcome, Outcome)
#define PATCHBAY_PUT_RESULT_PART_FIELDS(F) F(lease, Lease) F(task, Task) F(offset, Offset) \
  F(bytes, Bytes)
#define PATCHBAY_RESULT_PART_KEPT_FIELDS(F) F(kept_bytes, KeptBytes)
#define PATCHBAY_PEERS_DROPPED_FIELDS(F) F(stream, Stream) F(rank, Rank) F(items, Items)
#define PATCHBAY_UNITS_ASSIGNED_FIELDS(F) F(stream, Stream) F(rank, Rank) F(units, Units) \
  F(all_finished, AllFinished)
#define PATCHBAY_FINISH_UNIT_FIELDS(F) F(stream, Stream) F(rank, Rank) F(unit, Unit) \
  F(outcome, Outcome)
#define PATCHBAY_CHANGE_JOB_FIELDS(F) F(job, Job) F(change, Change) F(priority, Priority)
#define PATCHBAY_EXPLAIN_JOB_FIELDS(F) F(job, Job)
#define PATCHBAY_JOB_EXPLAINED_FIELDS(F) F(cause, Cause) F(facts, Facts)
#define PATCHBAY_CHANGE_NODE_FIELDS(F) F(node, Node) F(change, Change) F(text, Text)
#define PATCHBAY_FETCH_USAGE_FIELDS(F) F(since, Since) F(offset, Offset)
#define PATCHBAY_USAGE_FETCHED_FIELDS(F) F(rows, Rows) F(complete, Complete)
#define PATCHBAY_APPLY_TEAMS_FIELDS(F) F(policy, Policy) F(source, Source) F(move_to, MoveTo)
#define PATCHBAY_TEAMS_APPLIED_FIELDS(F) F(warnings, Warnings)
#define PATCHBAY_TEAMS_DESCRIBED_FIELDS(F) F(source, Source) F(digest, Digest) \
  F(applied_by, AppliedBy) F(applied_at, AppliedAt) F(warnings, Warnings) F(rows, Rows)
#define PATCHBAY_ADMIT_BROWSER_FIELDS(F) F(code, Code)
#define PATCHBAY_NO_FIELDS(F)

// Values inside messages: X(type, type on the wire, fields).
#define PATCHBAY_EVERY_PART(X) \
  X(LeaseNumber, wire::LeaseNumber, PATCHBAY_LEASE_NUMBER_FIELDS) \
  X(TaskId, wire::TaskId, PATCHBAY_TASK_ID_FIELDS) \
  X(ShardId, wire::ShardId, PATCHBAY_SHARD_ID_FIELDS) \
  X(Grant, wire::Grant, PATCHBAY_GRANT_FIELDS) \
  X(Resources, wire::Resources, PATCHBAY_RESOURCES_FIELDS) \
  X(TaskSpec, wire::TaskSpec, PATCHBAY_TASK_SPEC_FIELDS) \
  X(WorkCost, wire::WorkCost, PATCHBAY_WORK_COST_FIELDS) \
  X(StageTimes, wire::StageTimes, PATCHBAY_STAGE_TIMES_FIELDS) \
  X(Gpu, wire::Gpu, PATCHBAY_GPU_FIELDS) \
  X(TaskLease, wire::TaskLease, PATCHBAY_TASK_LEASE_FIELDS) \
  X(ShardLease, wire::ShardLease, PATCHBAY_SHARD_LEASE_FIELDS) \
  X(RenewLeases::Item, wire::RenewLeases::Item, PATCHBAY_RENEW_LEASES_ITEM_FIELDS) \
  X(TasksFinished::Item, wire::TasksFinished::Item, PATCHBAY_TASKS_FINISHED_ITEM_FIELDS) \
  X(ShardsReturned::Item, wire::ShardsReturned::Item, PATCHBAY_SHARDS_RETURNED_ITEM_FIELDS) \
  X(TrainerEndpoint, wire::TrainerEndpoint, PATCHBAY_TRAINER_ENDPOINT_FIELDS) \
  X(SlotRow, wire::SlotRow, PATCHBAY_SLOT_ROW_FIELDS) \
  X(AssignedUnit, wire::AssignedUnit, PATCHBAY_ASSIGNED_UNIT_FIELDS) \
  X(ShardsCounted::Item, wire::ShardsCounted::Item, PATCHBAY_SHARDS_COUNTED_ITEM_FIELDS) \
  X(PeersDropped::Item, wire::PeersDropped::Item, PATCHBAY_PEERS_DROPPED_ITEM_FIELDS) \
  X(FailedTask, wire::FailedTask, PATCHBAY_FAILED_TASK_FIELDS) \
  X(StreamCourse, wire::StreamCourse, PATCHBAY_STREAM_COURSE_FIELDS) \
  X(JobRow, wire::JobRow, PATCHBAY_JOB_ROW_FIELDS) \
  X(ClusterDescribed::Failure, wire::ClusterDescribed::Failure, \
    PATCHBAY_CLUSTER_DESCRIBED_FAILURE_FIELDS) \
  X(LogsFetched::Line, wire::LogsFetched::Line, PATCHBAY_LOGS_FETCHED_LINE_FIELDS) \
  X(NodeRow, wire::NodeRow, PATCHBAY_NODE_ROW_FIELDS) \
  X(WorkerRow, wire::WorkerRow, PATCHBAY_WORKER_ROW_FIELDS) \
  X(JobExplained::Fact, wire::JobExplained::Fact, PATCHBAY_JOB_EXPLAINED_FACT_FIELDS) \
  X(TeamRow, wire::TeamRow, PATCHBAY_TEAM_ROW_FIELDS) \
  X(UsageRow, wire::UsageRow, PATCHBAY_USAGE_ROW_FIELDS)
// Values whose lists lie elsewhere: runtime/core/outcome_fields.h, model/stream/stream_forms.h.
#define PATCHBAY_EVERY_FORMED_PART(X) \
  X(UnitRuns::Run, wire::UnitRun, PATCHBAY_UNIT_RUN_FIELDS) \
  X(Subject, wire::Subject, PATCHBAY_SUBJECT_FIELDS) \
  X(Outcome, wire::Outcome, PATCHBAY_OUTCOME_FIELDS)
// Values whose codec is written by hand (codec_messages.cc).
#define PATCHBAY_EVERY_UNUSUAL_PART(X) \
  X(StreamGeometry, wire::StreamGeometry, PATCHBAY_STREAM_GEOMETRY_FIELDS) \
  X(HeldLease, wire::HeldLease, PATCHBAY_HELD_LEASE_FIELDS)
// Messages: X(type, generated constant of its union member, fields).
#define PATCHBAY_EVERY_BODY(X) \
  X(Heartbeat, HEARTBEAT, PATCHBAY_HEARTBEAT_FIELDS) \
  X(HeartbeatSeen, HEARTBEAT_SEEN, PATCHBAY_HEARTBEAT_SEEN_FIELDS) \
  X(RequestFailed, REQUEST_FAILED, PATCHBAY_REQUEST_FAILED_FIELDS) \
  X(RegisterAgent, REGISTER_AGENT, PATCHBAY_REGISTER_AGENT_FIELDS) \
  X(AgentRegistered, AGENT_REGISTERED, PATCHBAY_AGENT_REGISTERED_FIELDS) \
  X(RegisterWorker, REGISTER_WORKER, PATCHBAY_REGISTER_WORKER_FIELDS) \
  X(WorkerRegistered, WORKER_REGISTERED, PATCHBAY_WORKER_REGISTERED_FIELDS) \
  X(LeasesGranted, LEASES_GRANTED, PATCHBAY_LEASES_GRANTED_FIELDS) \
  X(LeasesRevoked, LEASES_REVOKED, PATCHBAY_LEASES_REVOKED_FIELDS) \
  X(FetchStream, FETCH_STREAM, PATCHBAY_FETCH_STREAM_FIELDS) \
  X(StreamDescribed, STREAM_DESCRIBED, PATCHBAY_STREAM_DESCRIBED_FIELDS) \
  X(RenewLeases, RENEW_LEASES, PATCHBAY_RENEW_LEASES_FIELDS) \
  X(LeasesRenewed, LEASES_RENEWED, PATCHBAY_LEASES_RENEWED_FIELDS) \
  X(TasksFinished, TASKS_FINISHED, PATCHBAY_TASKS_FINISHED_FIELDS) \
  X(TasksCommitted, TASKS_COMMITTED, PATCHBAY_TASKS_COMMITTED_FIELDS) \
  X(ShardsReturned, SHARDS_RETURNED, PATCHBAY_SHARDS_RETURNED_FIELDS) \
  X(WorkerExited, WORKER_EXITED, PATCHBAY_WORKER_EXITED_FIELDS) \
  X(WorkerExitSeen, WORKER_EXIT_SEEN, PATCHBAY_NO_FIELDS) \
  X(KillWorker, KILL_WORKER, PATCHBAY_KILL_WORKER_FIELDS) \
  X(Drain, DRAIN, PATCHBAY_NO_FIELDS) \
  X(Drained, DRAINED, PATCHBAY_NO_FIELDS) \
  X(AttachTrainer, ATTACH_TRAINER, PATCHBAY_ATTACH_TRAINER_FIELDS) \
  X(TrainerAttached, TRAINER_ATTACHED, PATCHBAY_TRAINER_ATTACHED_FIELDS) \
  X(AnnounceSlots, ANNOUNCE_SLOTS, PATCHBAY_ANNOUNCE_SLOTS_FIELDS) \
  X(ShardsCounted, SHARDS_COUNTED, PATCHBAY_SHARDS_COUNTED_FIELDS) \
  X(FenceShard, FENCE_SHARD, PATCHBAY_FENCE_SHARD_FIELDS) \
  X(ShardFenced, SHARD_FENCED, PATCHBAY_SHARD_FENCED_FIELDS) \
  X(StreamFailed, STREAM_FAILED, PATCHBAY_STREAM_FAILED_FIELDS) \
  X(DetachTrainer, DETACH_TRAINER, PATCHBAY_DETACH_TRAINER_FIELDS) \
  X(TrainerDetached, TRAINER_DETACHED, PATCHBAY_NO_FIELDS) \
  X(SubmitJob, SUBMIT_JOB, PATCHBAY_SUBMIT_JOB_FIELDS) \
  X(JobSubmitted, JOB_SUBMITTED, PATCHBAY_JOB_SUBMITTED_FIELDS) \
  X(DescribeJobs, DESCRIBE_JOBS, PATCHBAY_DESCRIBE_JOBS_FIELDS) \
  X(JobsDescribed, JOBS_DESCRIBED, PATCHBAY_JOBS_DESCRIBED_FIELDS) \
  X(FetchResult, FETCH_RESULT, PATCHBAY_FETCH_RESULT_FIELDS) \
  X(ResultFetched, RESULT_FETCHED, PATCHBAY_RESULT_FETCHED_FIELDS) \
  X(CancelJob, CANCEL_JOB, PATCHBAY_CANCEL_JOB_FIELDS) \
  X(JobCancelled, JOB_CANCELLED, PATCHBAY_NO_FIELDS) \
  X(RetryJob, RETRY_JOB, PATCHBAY_RETRY_JOB_FIELDS) \
  X(JobRetried, JOB_RETRIED, PATCHBAY_JOB_RETRIED_FIELDS) \
  X(FetchLogs, FETCH_LOGS, PATCHBAY_FETCH_LOGS_FIELDS) \
  X(LogsFetched, LOGS_FETCHED, PATCHBAY_LOGS_FETCHED_FIELDS) \
  X(DescribeCluster, DESCRIBE_CLUSTER, PATCHBAY_NO_FIELDS) \
  X(ClusterDescribed, CLUSTER_DESCRIBED, PATCHBAY_CLUSTER_DESCRIBED_FIELDS) \
  X(ReloadKeys, RELOAD_KEYS, PATCHBAY_NO_FIELDS) \
  X(KeysReloaded, KEYS_RELOADED, PATCHBAY_NO_FIELDS) \
  X(ShutDown, SHUT_DOWN, PATCHBAY_NO_FIELDS) \
  X(ShuttingDown, SHUTTING_DOWN, PATCHBAY_SHUTTING_DOWN_FIELDS) \
  X(PutResultPart, PUT_RESULT_PART, PATCHBAY_PUT_RESULT_PART_FIELDS) \
  X(ResultPartKept, RESULT_PART_KEPT, PATCHBAY_RESULT_PART_KEPT_FIELDS) \
  X(PeersDropped, PEERS_DROPPED, PATCHBAY_PEERS_DROPPED_FIELDS) \
  X(UnitsAssigned, UNITS_ASSIGNED, PATCHBAY_UNITS_ASSIGNED_FIELDS) \
  X(FinishUnit, FINISH_UNIT, PATCHBAY_FINISH_UNIT_FIELDS) \
  X(UnitFinished, UNIT_FINISHED, PATCHBAY_NO_FIELDS) \
  X(ChangeJob, CHANGE_JOB, PATCHBAY_CHANGE_JOB_FIELDS) \
  X(JobChanged, JOB_CHANGED, PATCHBAY_NO_FIELDS) \
  X(ExplainJob, EXPLAIN_JOB, PATCHBAY_EXPLAIN_JOB_FIELDS) \
  X(JobExplained, JOB_EXPLAINED, PATCHBAY_JOB_EXPLAINED_FIELDS) \
  X(ChangeNode, CHANGE_NODE, PATCHBAY_CHANGE_NODE_FIELDS) \
  X(NodeChanged, NODE_CHANGED, PATCHBAY_NO_FIELDS) \
  X(FetchUsage, FETCH_USAGE, PATCHBAY_FETCH_USAGE_FIELDS) \
  X(UsageFetched, USAGE_FETCHED, PATCHBAY_USAGE_FETCHED_FIELDS) \
  X(ApplyTeams, APPLY_TEAMS, PATCHBAY_APPLY_TEAMS_FIELDS) \
  X(TeamsApplied, TEAMS_APPLIED, PATCHBAY_TEAMS_APPLIED_FIELDS) \
  X(DescribeTeams, DESCRIBE_TEAMS, PATCHBAY_NO_FIELDS) \
  X(TeamsDescribed, TEAMS_DESCRIBED, PATCHBAY_TEAMS_DESCRIBED_FIELDS) \
  X(AdmitBrowser, ADMIT_BROWSER, PATCHBAY_ADMIT_BROWSER_FIELDS) \
  X(BrowserAdmitted, BROWSER_ADMITTED, PATCHBAY_NO_FIELDS)
// clang-format on

namespace patchbay::protocol {

/// The largest enumerant that this version knows.
template <typename Enum>
inline constexpr Enum kLastOf{};
template <>
inline constexpr Numerics kLastOf<Numerics> = Numerics::kStrict;
template <>
inline constexpr Tail kLastOf<Tail> = Tail::kWrap;
template <>
inline constexpr JobState kLastOf<JobState> = JobState::kCancelled;
template <>
inline constexpr JobChange kLastOf<JobChange> = JobChange::kForget;
template <>
inline constexpr NodeChange kLastOf<NodeChange> = NodeChange::kLabel;
template <>
inline constexpr TaskState kLastOf<TaskState> = TaskState::kQuarantined;
template <>
inline constexpr SubjectKind kLastOf<SubjectKind> = SubjectKind::kPeer;
template <>
inline constexpr SlotState kLastOf<SlotState> = SlotState::kResting;

template <typename... Struct, typename... T>
constexpr auto ListOf(int, Field<Struct, T>... fields) {
  return AsFullObject(fields...);
}

/// ListOf(type): every field, in the order of its list. A member that is in no list does not
/// compile.
#define PATCHBAY_ONE(member, Wire) +1
#define PATCHBAY_ALL_LISTED(Type, Wire, FIELDS)                    \
  static_assert((0 FIELDS(PATCHBAY_ONE)) == fields::Count<Type>(), \
                "a member of " #Type " is missing in message_fields.h");
#define PATCHBAY_FIELD(member, Wire) , Field(#member, &T::member)
#define PATCHBAY_LIST_OF(Type, Wire, FIELDS)        \
  constexpr auto ListOf(std::type_identity<Type>) { \
    using T [[maybe_unused]] = Type;                \
    return ListOf(0 FIELDS(PATCHBAY_FIELD));        \
  }                                                 \
  PATCHBAY_ALL_LISTED(Type, Wire, FIELDS)
PATCHBAY_EVERY_PART(PATCHBAY_LIST_OF)
PATCHBAY_EVERY_FORMED_PART(PATCHBAY_ALL_LISTED)
PATCHBAY_EVERY_UNUSUAL_PART(PATCHBAY_LIST_OF)
PATCHBAY_EVERY_BODY(PATCHBAY_LIST_OF)
#undef PATCHBAY_LIST_OF
#undef PATCHBAY_FIELD
#undef PATCHBAY_ALL_LISTED
#undef PATCHBAY_ONE

}  // namespace patchbay::protocol

namespace patchbay {

template <typename T>
requires requires { protocol::ListOf(std::type_identity<T>()); }
struct FieldsOf<T> {
  static constexpr auto List() { return protocol::ListOf(std::type_identity<T>()); }
};

}  // namespace patchbay
