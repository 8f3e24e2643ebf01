# The Patchbay control protocol, version 1
# =========================================
#
# PURPOSE. This file is the specification of every message on the control plane: requests, answers,
# senders, order, and the guarantees that a peer may rely on. It reads top to bottom. Patches never
# travel here; see runtime/wire/data for the bytes.
#
# VOCABULARY (the whole list is in runtime/README.md).
#   job        what a user submits; it consists of tasks
#   task       one unit of work: an op name and a payload, with what it needs and depends on
#   stream     a job whose shards are made for trainers until they detach; its id is the job's id
#   plan       what every patch of a stream can be derived from; named by its SHA-256
#   batch      one step of all ranks together; rank r of world_size holds one part of it
#   unit       a run of batches that goes whole to one consumer: an image of a map
#   consumer   a trainer of a stream with units, one of any number: its rank is drawn by itself
#   shard      a fixed contiguous slice of one rank's part, made by one worker under one lease
#   slot       trainer memory for one rank's part of one batch; its generation rises at each reuse
#   grant      the single-use right to write one shard's bytes into a slot
#   lease      the right to work on a task or shard until a deadline, under a number that only rises
#
# TRANSPORT. The scheduler binds one ZeroMQ ROUTER; every other process (agent, worker, trainer,
# command) connects one DEALER with a random routing id. Every connection is CURVE, on loopback and
# Unix sockets too; the scheduler admits only the public keys of its table. One message is one frame:
# one Cap'n Proto message with an Envelope as its root, unpacked, in standard framing.
#   - a frame is at most 8 MiB, has at most 4 segments and nothing after its last one;
#   - structures nest at most 16 deep; a list has at most 65,536 elements;
#   - an unknown union member or enumerant is an error, never a default.
# A frame that breaks a rule is dropped and counted; it has no other effect.
#
# IDENTITY. The key of the connection decides who speaks, and nothing in a message does: the
# scheduler looks the key up and finds its name, role and path prefixes. A `node` in a message must
# be the one that key registered. Roles: worker (agents and workers), trainer, submitter, operator.
#
# REQUESTS. A command carries requestId > 0, unique within its sender's incarnation (a random number
# drawn per process); its answer, the fact, carries the same. RequestFailed may answer any command.
# A command may be repeated: the same (senderIncarnation, requestId) has the effect of one and gets
# the same answer. requestId 0 marks a message without an answer.
#
# ORDERING. Messages between two processes arrive in order while one connection lasts. Across a
# reconnection anything sent before may be lost, so nothing relies on delivery: commands are
# repeated until answered, leases expire, outcomes are repeated until committed.
#
# DURABILITY. JobSubmitted, TasksCommitted, JobCancelled, JobRetried and UnitFinished leave the scheduler only
# when their content is on disk. Leases, grants and stream progress are never written: after a
# restart of the scheduler (its incarnation rises) workers report their leases, trainers report
# their slots, and nothing is leased again for two lease times unless its worker is known to be
# dead.
#
# VERSIONS. `version` is that of the sender. A peer accepts every version from its own minimum to its
# own. Fields are only ever appended; nothing is renumbered; a new union member is sent only to a
# peer whose version has it.
#
# DUTIES OF A MINIMAL PEER
#   user       SubmitJob (repeat until JobSubmitted), DescribeJobs until the job has ended.
#   worker     RegisterWorker at every connection, with what it holds. Run what LeasesGranted brings,
#              RenewLeases about every second with counters that move, TasksFinished until
#              TasksCommitted, drop what LeasesRevoked or LeasesRenewed.unknown name.
#   agent      RegisterAgent at every connection, Heartbeat every heartbeatMs, WorkerExited for every
#              child that ends, KillWorker at once.
#   trainer    AttachTrainer at every connection with its slot table, Heartbeat, AnnounceSlots as
#              slots come back, ShardsCounted, ShardFenced for every FenceShard, DetachTrainer.
#              PeersDropped is for people; nothing depends on it.
#   consumer   the same with a random rank, and FinishUnit for every unit that it has taken whole.

@0xb6c1a54e0f5d7a31;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("patchbay::protocol::wire");

# ---------------------------------------------------------------- the envelope

# The root of every frame.
struct Envelope {
  version @0 :UInt16;             # version of the sender: 1
  senderIncarnation @1 :UInt64;   # random per process start
  requestId @2 :UInt64;           # pairs a command with its fact; 0 = unasked

  # Commands are imperative, facts are participles. In brackets: who sends it; a command from
  # anybody else is answered with RequestFailed.
  body :union {
    # any peer
    heartbeat @3 :Heartbeat;                  # [agent, worker, trainer]
    heartbeatSeen @4 :HeartbeatSeen;          # [scheduler]
    requestFailed @5 :RequestFailed;          # [scheduler]
    # agents and workers
    registerAgent @6 :RegisterAgent;          # [agent]
    agentRegistered @7 :AgentRegistered;      # [scheduler]
    registerWorker @8 :RegisterWorker;        # [worker]
    workerRegistered @9 :WorkerRegistered;    # [scheduler]
    leasesGranted @10 :LeasesGranted;         # [scheduler]
    leasesRevoked @11 :LeasesRevoked;         # [scheduler]
    fetchStream @12 :FetchStream;             # [worker]
    streamDescribed @13 :StreamDescribed;     # [scheduler]
    renewLeases @14 :RenewLeases;             # [worker]
    leasesRenewed @15 :LeasesRenewed;         # [scheduler]
    tasksFinished @16 :TasksFinished;         # [worker]
    tasksCommitted @17 :TasksCommitted;       # [scheduler]
    shardsReturned @18 :ShardsReturned;       # [worker]
    workerExited @19 :WorkerExited;           # [agent]
    workerExitSeen @20 :WorkerExitSeen;       # [scheduler]
    killWorker @21 :KillWorker;               # [scheduler]
    drain @22 :Drain;                         # [worker, agent; scheduler to both]
    drained @23 :Drained;                     # [scheduler; worker, agent]
    # trainers
    attachTrainer @24 :AttachTrainer;         # [user, as a trainer]
    trainerAttached @25 :TrainerAttached;     # [scheduler]
    announceSlots @26 :AnnounceSlots;         # [user, as a trainer]
    shardsCounted @27 :ShardsCounted;         # [user, as a trainer]
    fenceShard @28 :FenceShard;               # [scheduler]
    shardFenced @29 :ShardFenced;             # [user, as a trainer]
    streamFailed @30 :StreamFailed;           # [scheduler]
    detachTrainer @31 :DetachTrainer;         # [user, as a trainer]
    trainerDetached @32 :TrainerDetached;     # [scheduler]
    # users
    submitJob @33 :SubmitJob;                 # [user]
    jobSubmitted @34 :JobSubmitted;           # [scheduler]
    describeJobs @35 :DescribeJobs;           # [user]
    jobsDescribed @36 :JobsDescribed;         # [scheduler]
    fetchResult @37 :FetchResult;             # [user, worker]
    resultFetched @38 :ResultFetched;         # [scheduler]
    cancelJob @39 :CancelJob;                 # [user]
    jobCancelled @40 :JobCancelled;           # [scheduler]
    retryJob @41 :RetryJob;                   # [user]
    jobRetried @42 :JobRetried;               # [scheduler]
    fetchLogs @43 :FetchLogs;                 # [user]
    logsFetched @44 :LogsFetched;             # [scheduler]
    describeCluster @45 :DescribeCluster;     # [user]
    clusterDescribed @46 :ClusterDescribed;   # [scheduler]
    reloadKeys @47 :ReloadKeys;               # [operator]
    keysReloaded @48 :KeysReloaded;           # [scheduler]
    shutDown @49 :ShutDown;                   # [operator]
    shuttingDown @50 :ShuttingDown;           # [scheduler]
    # results that one message does not carry
    putResultPart @51 :PutResultPart;         # [worker]
    resultPartKept @52 :ResultPartKept;       # [scheduler]
    # peers that were turned away from a trainer's data path
    peersDropped @53 :PeersDropped;           # [user, as a trainer]
    # consumers of streams with units
    unitsAssigned @54 :UnitsAssigned;         # [scheduler]
    finishUnit @55 :FinishUnit;               # [user, as a trainer]
    unitFinished @56 :UnitFinished;           # [scheduler]
    # users and operators: changes of jobs and nodes, usage, teams
    changeJob @57 :ChangeJob;                 # [user]
    jobChanged @58 :JobChanged;               # [scheduler]
    explainJob @59 :ExplainJob;               # [user]
    jobExplained @60 :JobExplained;           # [scheduler]
    changeNode @61 :ChangeNode;               # [operator]
    nodeChanged @62 :NodeChanged;             # [scheduler]
    fetchUsage @63 :FetchUsage;               # [user]
    usageFetched @64 :UsageFetched;           # [scheduler]
    applyTeams @65 :ApplyTeams;               # [operator]
    teamsApplied @66 :TeamsApplied;           # [scheduler]
    describeTeams @67 :DescribeTeams;         # [user]
    teamsDescribed @68 :TeamsDescribed;       # [scheduler]
    # users: browsers that show the dashboard
    admitBrowser @69 :AdmitBrowser;           # [user]
    browserAdmitted @70 :BrowserAdmitted;     # [scheduler]
  }
}

# ---------------------------------------------------------------- shared values

# Names a lease. A larger pair was granted later; {0, 0} is none.
struct LeaseNumber {
  incarnation @0 :UInt32;   # the scheduler's, journalled, rises at each start
  counter @1 :UInt64;
}

# A task of a job. Index 0 is the root; spawned tasks are numbered as they commit.
struct TaskId {
  job @0 :UInt64;
  index @1 :UInt32;
}

# Counted once by this id, whatever lease it was made under.
struct ShardId {
  epoch @0 :UInt32;
  rank @1 :UInt32;
  batch @2 :UInt64;   # within the epoch
  shard @3 :UInt32;   # within the rank's part of the batch
}

# The right to write so many patches into one generation of one slot, once. The stream's layout and
# capacity tell which bytes of each array that is.
struct Grant {
  slot @0 :UInt32;
  slotGeneration @1 :UInt64;
  place @2 :UInt32;          # place of the first patch, in the rank's part of the batch
  count @3 :UInt32;
}

# The rule for the incomplete last batch of an epoch.
enum Tail { keep @0; drop @1; pad @2; wrap @3; }

# How a stream's epochs are cut. Part of the plan, repeated here so that peers can count without the
# plan.
struct StreamGeometry {
  patchesPerEpoch @0 :UInt64;
  globalBatch @1 :UInt32;    # patches of one step of all ranks
  worldSize @2 :UInt32;
  shardPatches @3 :UInt32;   # most patches in one shard
  tail @4 :Tail;
  units @5 :List(UnitRun);   # parts of the epoch: each is cut into batches of its own, the last
                             # one smaller. Then worldSize is 1, and a batch is whole at any rank
}

# So many units of equally many patches, one after another.
struct UnitRun {
  patchesPerUnit @0 :UInt64;
  units @1 :UInt64;
}

# The implementation of the ops that makes a stream's bytes; a worker has exactly one.
enum Numerics { cpu @0; cuda @1; strict @2; }

# Resources that a task needs while it runs, or a worker has.
struct Resources {
  cpuMillis @0 :UInt32;   # 1000 = one core
  gpus @1 :UInt32;
  memoryBytes @2 :UInt64;
}

# The subject of an error, by number: texts hold no user's paths. A user's program fills in names
# from its own data (the manifest that it submitted, the list of slides or images).
struct Subject {
  kind @0 :SubjectKind;
  index @1 :UInt64;               # number of its kind within the job, from 0
  part @2 :Text;                  # place inside it by names that the format gives: "0/c/1/2". With no
                                  # kind: a name that says all. With configKey: the key
}

enum SubjectKind {
  none @0;
  run @1;                         # the job; with a part, a file of its output folder
  configKey @2;
  image @3;                       # in the order of the plan
  row @4;
  slide @5;                       # in the job's own order
  store @6;                       # entry of the manifest's "images"
  volume @7;
  labelSet @8;
  patch @9;
  file @10;                       # entry of the manifest's "sources"
  node @11;
  peer @12;
}

# How work ended. `code` is the number of the canonical status code, 0 = OK and nothing else is set.
# For people: "<doing>: <subject>: <cause>; <advice>".
struct Outcome {
  code @0 :Int32;
  cause @1 :Text;
  doing @2 :Text;
  subject @3 :Subject;
  advice @4 :Text;
  others @5 :List(Subject);       # things that doing, cause and advice name: each stands where the next
                                  # character 0x1a does. At most 16. One more, 16 hex digits
                                  # without a kind, is the pseudonym of a slide that `subject` is about
}

# The specification of a task, as a job or another task submits it.
struct TaskSpec {
  op @0 :Text;                    # a registered task op; no code is sent
  payload @1 :Data;               # JSON, defined by the op; never a path (see SubmitJob.manifest)
  resources @2 :Resources;
  dependsOn @3 :List(UInt32);     # task indices in the same job; their results become its inputs
  afterFailures @4 :Bool;         # false: cancelled when a dependency does not succeed. true: runs
                                  # once every dependency has ended; with no dependency, once every
                                  # other task of the job has
  group @5 :UInt32;               # 0 = the job; one group (one slide) fails together, alone
  label @6 :Text;                 # short, no PHI
  weight @7 :UInt64;              # share of the job's progress
}

enum JobState { queued @0; running @1; done @2; failed @3; partlyFailed @4; cancelled @5; }
enum TaskState { waiting @0; ready @1; leased @2; done @3; failed @4; cancelled @5; quarantined @6; }

# ---------------------------------------------------------------- any peer

# "I am alive and this far": from a thread that does no task work, about every 500 ms; a worker's every
# 5 s, since its agent's speaks for it. About 3 s without makes a peer suspect (nothing more is leased
# to it).
struct Heartbeat {
  progress @0 :UInt64;
  waitP50Us @1 :UInt64;     # a trainer's, for a batch so far, from the second batch on
  waitP99Us @2 :UInt64;
  memoryBytes @3 :UInt64;   # resident: of an agent's workers, of a trainer's process
  silent @4 :List(UInt32);  # an agent's: its workers that it has not heard for a second
}

struct HeartbeatSeen {
  schedulerIncarnation @0 :UInt32;   # another one than before: register again
}

# The answer to a command that cannot be carried out. Nothing has changed; the connection stays.
struct RequestFailed {
  outcome @0 :Outcome;
}

# ---------------------------------------------------------------- agents and workers

struct Gpu {
  uuid @0 :Text;
  name @1 :Text;
  memoryBytes @2 :UInt64;
}

# An agent offers its node. Repeating it is harmless.
struct RegisterAgent {
  node @0 :Text;             # binds this node name to the key until the agent is forgotten
  hostIdentity @1 :Text;     # boot id, namespaces and user; equal = mapped delivery is possible
  cpus @2 :UInt32;           # cores that work may take: one for each CPU worker, one for each GPU
  memoryBytes @3 :UInt64;
  gpus @4 :List(Gpu);
  agentIncarnation @5 :UInt64;
  hostName @6 :Text;         # for messages to people
}

struct AgentRegistered {
  schedulerIncarnation @0 :UInt32;
  heartbeatMs @1 :UInt32;
}

# A lease as its holder knows it.
struct HeldLease {
  lease @0 :LeaseNumber;
  union {
    task @1 :TaskId;
    shard :group {
      stream @2 :UInt64;
      id @3 :ShardId;
    }
  }
}

# A worker process registers, with the leases that it still holds: a restarted scheduler learns of
# them this way.
struct RegisterWorker {
  node @0 :Text;                 # must be registered with the same key
  index @1 :UInt32;              # on its node
  numerics @2 :Numerics;
  agentIncarnation @3 :UInt64;
  workerIncarnation @4 :UInt64;  # random per process
  pid @5 :Int64;                 # in the node's PID namespace
  capacity @6 :Resources;
  held @7 :List(HeldLease);
  byteVersions @8 :Text;         # versions of the code that decides bytes; the geometry of a stream's plan
                                 # names its maker's, and only workers with the same make its shards
  hostIdentity @9 :Text;         # as RegisterAgent.hostIdentity, of this process
}

struct WorkerRegistered {
  schedulerIncarnation @0 :UInt32;
  leaseMs @1 :UInt32;            # a lease not renewed for this long is void
}

# The right, and the duty, to run a task.
struct TaskLease {
  lease @0 :LeaseNumber;
  task @1 :TaskId;
  op @2 :Text;
  payload @3 :Data;
  inputs @4 :List(Data);           # results of dependsOn, in that order
  manifest @5 :Data;               # the job's: paths, for the worker's eyes, never logged
  submitter @6 :Text;              # name of the key whose prefixes bind this task
  readPrefixes @7 :List(Text);     # prefixes of that key; empty = nothing may be read, "/" = everything
  writePrefixes @8 :List(Text);
  inputsApart @9 :List(UInt32);    # instead of inputs too large for one message: the tasks that they
                                   # are results of, to be fetched with FetchResult before it starts
  planning @10 :Bool;              # a task of a stream's planning: runs in a thread of its own beside what else
                                   # the worker has, one at a time; an op that plans nothing is refused
}

# The right to make one shard and to write it into the slot of the grant.
struct ShardLease {
  lease @0 :LeaseNumber;
  stream @1 :UInt64;
  shard @2 :ShardId;
  firstOrdinal @3 :UInt64;   # ordinal of its first patch, in the epoch
  grant @4 :Grant;
}

# Sent without a request: as many leases as the worker's queue takes.
struct LeasesGranted {
  tasks @0 :List(TaskLease);
  shards @1 :List(ShardLease);
}

# Sent without a request: drop these leases, and stop running work where possible. Results under
# them are refused.
struct LeasesRevoked {
  leases @0 :List(LeaseNumber);
}

# Asks for the facts of a stream that a worker must know before its first shard. Answer:
# StreamDescribed.
struct FetchStream {
  stream @0 :UInt64;
  offset @1 :UInt64;        # in plan and manifest, one after the other
}

# The address of one rank's ring.
struct TrainerEndpoint {
  rank @0 :UInt32;
  hostIdentity @1 :Text;
  node @2 :Text;
  socketName @3 :Text;      # abstract Unix socket (without the leading NUL) that hands out the ring
  remoteAddress @4 :Text;   # for workers of other nodes: "tls://ip:port/incarnation" of the trainer, or
                            # "ucx://" and the address of its UCX worker in hex digits; empty: nothing
                            # comes from other nodes
  streamSecret @5 :Data;    # 32 bytes, proven by every peer that wants to write
}

# The answer to FetchStream; also sent without a request when the trainers change.
struct StreamDescribed {
  stream @0 :UInt64;
  planDigest @1 :Data;      # 32 bytes: SHA-256 of plan
  plan @2 :Data;            # 1 MiB of plan and manifest together, from the offset asked for;
  manifest @3 :Data;        # unasked, nothing: only the trainers changed
  trainers @4 :List(TrainerEndpoint);
  readPrefixes @5 :List(Text);
  planBytes @6 :UInt64;     # bytes of the whole plan
  manifestBytes @7 :UInt64; # bytes of the whole manifest: paths, in the order of the plan's image table
  geometry @8 :StreamGeometry;
  capacity @9 :UInt32;      # most patches any rank's part of a batch has; a worker whose plan gives
                            # another geometry or capacity refuses the stream
}

# Sent about every second. A lease whose counter does not rise is not renewed.
struct RenewLeases {
  items @0 :List(Item);
  struct Item {
    lease @0 :LeaseNumber;
    progress @1 :UInt64;
    cpuUs @2 :Int64;        # processor time that the task which runs under it has taken so far; else 0
  }
}

struct LeasesRenewed {
  unknown @0 :List(LeaseNumber);   # no longer yours: drop them
}

# Costs of one task or shard, as its worker measured them.
struct WorkCost {
  cpuUs @0 :Int64;            # processor time of the threads that worked on it
  gpuUs @1 :Int64;            # time that the device was busy with it
  bytesRead @2 :UInt64;
  bytesDelivered @3 :UInt64;
}

# Wall time that the stages of a worker took for one shard, all its patches together.
struct StageTimes {
  storageUs @0 :UInt32;
  decodeUs @1 :UInt32;
  transformUs @2 :UInt32;
  transferUs @3 :UInt32;      # over a network; 0 where the shard was written in place
}

# Outcomes of tasks. Repeated until TasksCommitted names the lease. Committing twice is harmless.
struct TasksFinished {
  items @0 :List(Item);
  struct Item {
    lease @0 :LeaseNumber;
    task @1 :TaskId;
    outcome @2 :Outcome;
    result @3 :Data;               # its end, at most 1 MiB
    spawned @4 :List(TaskSpec);    # appended to the job by the same commit; in dependsOn, 2^31 + i
                                   # means the i-th of this list, less means a task that exists
    progressBytes @5 :UInt64;      # work done, for rates
    resultOffset @6 :UInt64;       # where `result` begins: the bytes sent before by PutResultPart
    cost @7 :WorkCost;
  }
}

# The next piece of a result that one message does not carry (at most 32 MiB in all). Kept with the
# lease until TasksFinished; when the lease ends, so do they.
struct PutResultPart {
  lease @0 :LeaseNumber;
  task @1 :TaskId;
  offset @2 :UInt64;        # bytes that were put before
  bytes @3 :Data;           # at most 1 MiB
}

struct ResultPartKept {
  keptBytes @0 :UInt64;     # so far
}

# The outcomes are durable, or known to be stale: forget them in both cases.
struct TasksCommitted {
  leases @0 :List(LeaseNumber);
}

# The worker is done with these shard leases. The trainer decides whether a shard counts.
struct ShardsReturned {
  items @0 :List(Item);
  struct Item {
    lease @0 :LeaseNumber;
    stream @1 :UInt64;
    shard @2 :ShardId;
    outcome @3 :Outcome;   # Unavailable = delivery failed, the pair is barred for a while;
                           # DataLoss = bad input, the stream fails
    cost @4 :WorkCost;
    stages @5 :StageTimes;
  }
}

# The agent has reaped a worker's process: proof that it writes nothing more.
struct WorkerExited {
  node @0 :Text;
  index @1 :UInt32;
  workerIncarnation @2 :UInt64;   # 0 = it died before it registered
  waitStatus @3 :Int32;           # as waitpid gives it. Exit code 86: the thread that plans crashed, so
                                  # what the worker held beside it is not suspected
}

struct WorkerExitSeen {}

# Scheduler to agent: SIGKILL this process. The answer is WorkerExited.
struct KillWorker {
  index @0 :UInt32;
  workerIncarnation @1 :UInt64;
}

# The sender leaves (worker, agent) or must leave (from the scheduler): finish running work, take no
# more.
struct Drain {}
struct Drained {}

# ---------------------------------------------------------------- trainers

# free: may be granted. filling: granted, incomplete. full: complete, unread or in use. resting:
# given up to a fenced writer, not to be granted until its death is proven.
enum SlotState { free @0; filling @1; full @2; resting @3; }

# A slot as the trainer sees it. The trainer's table is authoritative.
struct SlotRow {
  slot @0 :UInt32;
  state @1 :SlotState;
  generation @2 :UInt64;
  epoch @3 :UInt32;               # epoch of the batch it holds, unless free
  batch @4 :UInt64;
  counted @5 :List(UInt32);       # shards that have arrived
}

# One rank joins a stream at a position and announces its ring. Repeated after every reconnection,
# and when a process that it named has ended. From the message until its answer the trainer gives
# its ring to no process; afterwards to none that asks with a lease of an earlier scheduler than the
# one that answered.
struct AttachTrainer {
  stream @0 :UInt64;
  rank @1 :UInt32;
  worldSize @2 :UInt32;           # must be the plan's
  firstEpoch @3 :UInt32;
  firstBatch @4 :UInt64;
  trainerIncarnation @5 :UInt64;  # a larger set of ranks may not mix incarnations of one rank
  pid @6 :Int64;
  endpoint @7 :TrainerEndpoint;
  slots @8 :List(SlotRow);
  holders @9 :List(Int64);        # worker processes that have the ring mapped and are not proven dead: a
                                  # scheduler that has just started grants nothing into it before each of
                                  # them has registered and dropped its older leases, or has ended
  units @10 :List(AssignedUnit);  # units that this consumer is not done with. Aborted = it was silent for too
                                  # long, or one of them is another's by now: it leaves, and starts over
                                  # with a new rank
}

# A unit as it was given to a consumer. Its batches there are under this epoch, which rises where a
# unit has a lower number than the one before it: a consumer's positions rise. It decides no byte.
struct AssignedUnit {
  unit @0 :UInt64;
  epoch @1 :UInt32;
}

# Sent without a request, and again with every HeartbeatSeen: the units that a consumer has and has
# not finished. It adds those that it did not know; none is taken from it this way. As the answer to
# AttachTrainer: every unit is finished, the job has ended, and there is nothing to attach to.
struct UnitsAssigned {
  stream @0 :UInt64;
  rank @1 :UInt32;
  units @2 :List(AssignedUnit);
  allFinished @3 :Bool;           # every unit of the stream is finished, by whomever
}

# The unit is done: sent by the consumer that has it, or had it. With an outcome other than OK it
# failed alone. Once on disk it is given to nobody again; the first outcome counts. A consumer that
# has not taken all its batches leaves the stream afterwards, and starts over with a new rank.
struct FinishUnit {
  stream @0 :UInt64;
  rank @1 :UInt32;
  unit @2 :UInt64;
  outcome @3 :Outcome;
}

struct UnitFinished {}

struct TrainerAttached {
  schedulerIncarnation @0 :UInt32;
  planDigest @1 :Data;            # 32 bytes
  geometry @2 :StreamGeometry;
}

# These slots are free, new or released. Each may be granted for the next batch.
struct AnnounceSlots {
  stream @0 :UInt64;
  rank @1 :UInt32;
  slots @2 :List(SlotRow);
}

# These shards are in memory and will not be made again.
struct ShardsCounted {
  stream @0 :UInt64;
  rank @1 :UInt32;
  items @2 :List(Item);
  struct Item {
    lease @0 :LeaseNumber;
    shard @1 :ShardId;
  }
}

# Connections and shards that the trainer's data path dropped since it attached, and why: the whole
# list, again when it changed. ClusterDescribed shows it to users; there stream 0 is the scheduler's
# own port, for operators.
struct PeersDropped {
  stream @0 :UInt64;
  rank @1 :UInt32;
  items @2 :List(Item);           # at most 32
  struct Item {
    address @0 :Text;             # numeric, without a port
    reason @1 :Text;
    times @2 :UInt64;
    lastAt @3 :Int64;             # seconds since 1970
  }
}

# Accept nothing more under this lease; report when its holder can no longer write.
struct FenceShard {
  stream @0 :UInt64;
  lease @1 :LeaseNumber;
  shard @2 :ShardId;
  workerPid @3 :Int64;            # 0 = the holder was on another node
  grant @4 :Grant;                # the bytes the holder may still be writing
}

# The range may be granted again: the holder is dead, its receive has completed, or the batch moved.
struct ShardFenced {
  stream @0 :UInt64;
  lease @1 :LeaseNumber;
  shard @2 :ShardId;
  row @3 :SlotRow;                # the slot that fills this batch now
  alreadyCounted @4 :Bool;        # the shard arrived before the fence: nothing to make
}

# The stream cannot go on. Sent to every rank; the trainer's next wait returns the outcome.
struct StreamFailed {
  stream @0 :UInt64;
  outcome @1 :Outcome;
}

# The rank leaves for good. When the last one has, the stream is done.
struct DetachTrainer {
  stream @0 :UInt64;
  rank @1 :UInt32;
}

struct TrainerDetached {}

# ---------------------------------------------------------------- users

# Answered once the job is on disk.
struct SubmitJob {
  submissionKey @0 :Text;   # chosen by the submitter; the same key from the same submitter is the
                            # same job, also after a restart of either side
  kind @1 :Text;            # "ingest", "stream", ...
  name @2 :Text;            # shown to people; no PHI
  root @3 :TaskSpec;
  manifest @4 :Data;        # JSON with the paths; shown only to this job's workers
  priority @5 :Int32;       # higher first, then submission order: -100 to 100, above 0 for operators
                            # only; refused otherwise
  worldSize @6 :UInt32;     # ranks that will attach; 1 for jobs that are no stream
  join @7 :Bool;            # an open stream job of this submitter and name is the answer; refused when
                            # it has another config, dataset, start or number of ranks. One step: ranks
                            # that start at once are one job
  waits @8 :Bool;           # a stream beyond the most that its team may have waits for its place; without
                            # it, it is refused
}

struct JobSubmitted {
  job @0 :UInt64;
}

struct FailedTask {
  task @0 :TaskId;
  label @1 :Text;
  outcome @2 :Outcome;
  group @3 :UInt32;           # TaskSpec.group: of a job over slides, the number of its slide + 1
}

# The course of a stream. Shares are in thousandths; "now" is the last 10 to 20 seconds.
struct StreamCourse {
  patchesPerKs @0 :UInt64;        # patches made in 1000 s at the rate of now
  stalled @1 :UInt32;             # share of now in which some trainer had no batch
  stage @2 :Text;                 # storage, decode, transform or transfer: the one that took the most of
                                  # the workers' time now; empty: no shard was made
  node @3 :Text;                  # node on which that stage took longest for a patch
  hour @4 :List(UInt32);          # shares of the last hour: what trainers waited, divided among storage,
                                  # decode, transform and transfer, then the rest; empty: not known yet
}

struct JobRow {
  job @0 :UInt64;
  kind @1 :Text;
  name @2 :Text;
  submitter @3 :Text;         # name of the key
  state @4 :JobState;
  priority @5 :Int32;
  submittedAt @6 :Int64;      # seconds since 1970
  finishedAt @7 :Int64;       # 0 while it runs
  tasksTotal @8 :UInt64;
  tasksDone @9 :UInt64;
  tasksFailed @10 :UInt64;
  tasksRunning @11 :UInt64;
  weightTotal @12 :UInt64;
  weightDone @13 :UInt64;
  progressBytes @14 :UInt64;
  failed @15 :List(FailedTask);   # at most 1000
  waitsFor @16 :Text;         # peer that the job's stream waits for; empty: none to name
  unattendedMs @17 :UInt64;   # time that a planned stream had no trainer; 0: it has one
  onHold @18 :Bool;           # its user keeps it from starting more work
  wantedCpuMillis @19 :UInt32;   # now; 1000 = one core
  heldCpuMillis @20 :UInt32;
  cause @21 :Text;            # code of JobExplained while it waits; empty: it does not
  patchesMade @22 :UInt64;    # patches of a stream, all its epochs
  patchesTotal @23 :UInt64;
  stalledMs @24 :UInt64;      # time that its trainers had no batch, in all
  team @25 :Text;             # empty: no policy of teams holds
  course @26 :StreamCourse;   # for an open stream
}

struct DescribeJobs {
  jobs @0 :List(UInt64);      # empty = those the asker may see, newest first, as many as a reply holds
  before @1 :UInt64;          # bound: only jobs older than this one; 0 = from the newest on
}

struct JobsDescribed {
  jobs @0 :List(JobRow);
}

# Index 0 is the job's root task, 0xffffffff its last one: of a stream, the one that makes the plan.
# A worker may fetch what a task that it holds depends on.
struct FetchResult {
  task @0 :TaskId;
  offset @1 :UInt64;
}

struct ResultFetched {
  task @0 :TaskId;
  state @1 :TaskState;
  result @2 :Data;            # from the offset on, at most 1 MiB; empty unless done
  resultBytes @3 :UInt64;     # bytes of the whole result
}

struct CancelJob {
  job @0 :UInt64;
}

struct JobCancelled {}

# Failed, cancelled and quarantined tasks of the job become ready again.
struct RetryJob {
  job @0 :UInt64;
}

struct JobRetried {
  tasks @0 :UInt64;
}

enum JobChange {
  priority @0;
  hold @1;
  release @2;
  forget @3;
}

# A job on hold starts no more work; what runs ends by itself. One that has ended can be forgotten: nobody sees it any more, and the
# journal's records of it go.
struct ChangeJob {
  job @0 :UInt64;
  change @1 :JobChange;
  priority @2 :Int32;         # with `priority`; limits as in SubmitJob
}

struct JobChanged {}

struct ExplainJob {
  job @0 :UInt64;
}

struct JobExplained {
  cause @0 :Text;             # one of a fixed list of codes; empty: it does not wait
  facts @1 :List(Fact);
  # One line for people, "held by" for example, and its text.
  struct Fact {
    name @0 :Text;
    text @1 :Text;
  }
}

struct FetchLogs {
  job @0 :UInt64;
  after @1 :UInt64;           # sequence number of the last line already seen
}

struct LogsFetched {
  lines @0 :List(Line);
  struct Line {
    sequence @0 :UInt64;
    at @1 :Int64;             # seconds since 1970
    text @2 :Text;
    outcome @3 :Outcome;      # why; printed behind the text
  }
}

struct NodeRow {
  node @0 :Text;
  state @1 :Text;             # "up", "suspect", "draining"; "away": not back since the scheduler started
  cpus @2 :UInt32;
  workers @3 :UInt32;
  gpus @4 :List(Gpu);
  drainedBy @5 :Text;         # name of the operator's key; empty: no operator drained it
  drainReason @6 :Text;
  label @7 :Text;             # an operator's, for people
}

struct WorkerRow {
  node @0 :Text;
  index @1 :UInt32;
  leases @2 :UInt32;
  pid @3 :Int64;
  state @4 :Text;             # "idle", "busy", "suspect", "draining"
  tasksDone @5 :UInt64;
  shardsDone @6 :UInt64;
}

struct DescribeCluster {}

struct ClusterDescribed {
  nodes @0 :List(NodeRow);
  workers @1 :List(WorkerRow);
  jobs @2 :List(JobRow);
  peersDropped @3 :List(PeersDropped);  # drops of streams the asker may see
  failures @4 :List(Failure);  # last hour's, in jobs the asker may see, newest first
  stateFreeBytes @5 :UInt64;      # free space where the journal is; 0: not known
  # A line of a job's log that says why something failed.
  struct Failure {
    job @0 :UInt64;
    at @1 :Int64;             # seconds since 1970
    text @2 :Text;
    outcome @3 :Outcome;
  }
}

enum NodeChange {
  drain @0;
  resume @1;
  label @2;
}

# A drained node finishes what it runs and gets no more until it is resumed. A label is for people.
struct ChangeNode {
  node @0 :Text;
  change @1 :NodeChange;
  text @2 :Text;              # the reason to drain it; the label, empty for none
}

struct NodeChanged {}

# ---------------------------------------------------------------- teams and usage

# The policy of teams from now on.
struct ApplyTeams {
  policy @0 :Text;            # JSON of the policy
  source @1 :Text;            # bytes of the file that it was read from
  moveTo @2 :Text;            # team that gets the jobs of teams that are gone; empty: refused then
}

struct TeamsApplied {
  warnings @0 :List(Text);
}

struct DescribeTeams {}

# A team, or a user of it. Amounts of cores are in thousandths.
struct TeamRow {
  team @0 :Text;
  user @1 :Text;              # empty: the team as a whole
  guaranteedCpuMillis @2 :UInt64;   # in force
  mostCpuMillis @3 :UInt64;   # 0: no cap
  weightMillis @4 :UInt32;
  wantedCpuMillis @5 :UInt64;
  heldCpuMillis @6 :UInt64;
  usedCpuMs @7 :UInt64;       # processor time, decayed
  jobsOpen @8 :UInt32;
  guaranteedGpus @9 :UInt64;
  mostGpus @10 :Int64 = -1;   # -1: no cap
  heldGpus @11 :UInt64;
  guaranteedMemoryBytes @12 :UInt64;
  mostMemoryBytes @13 :UInt64;      # 0: no cap
  heldMemoryBytes @14 :UInt64;
  lendPercent @15 :UInt32 = 100;    # part of its guarantee that others may have while it is idle
}

# For members their own team by user, for operators everything.
struct TeamsDescribed {
  source @0 :Text;            # for operators; empty: no policy was applied
  digest @1 :Data;            # SHA-256 of the source
  appliedBy @2 :Text;
  appliedAt @3 :Int64;        # seconds since 1970
  warnings @4 :List(Text);
  rows @5 :List(TeamRow);
}

struct FetchUsage {
  since @0 :Int64;            # seconds since 1970
  offset @1 :UInt64;          # rows of the answer that the asker has already
}

# Consumption of a job in one hour, or of all jobs of a user together, with job 0.
struct UsageRow {
  hour @0 :Int64;             # its first second, since 1970
  team @1 :Text;              # empty: of no team
  user @2 :Text;
  job @3 :UInt64;
  counted @4 :WorkCost;
  wasted @5 :WorkCost;        # for work that did not count
}

# Oldest first: a user's own rows, for operators all.
struct UsageFetched {
  rows @0 :List(UsageRow);
  complete @1 :Bool;          # no rows follow
}

# Read the key table again; sessions of keys that are revoked or gone end at once.
struct ReloadKeys {}
struct KeysReloaded {}

# Drain everything, then stop. ShuttingDown also goes unasked to the trainers of a scheduler that is
# told to stop: detach now with the position, or attach to its next start.
struct ShutDown {}
struct ShuttingDown {
  deadlineMs @0 :UInt64;      # from now: the scheduler ends then at the latest
}

# ---------------------------------------------------------------- the dashboard

# The browser that shows this code sees from now on what the sender may see. FailedPrecondition when
# there is no dashboard, NotFound when no browser shows the code now.
struct AdmitBrowser {
  code @0 :Text;
}
struct BrowserAdmitted {}
