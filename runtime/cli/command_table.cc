#include "runtime/cli/command_table.h"

#include <algorithm>
#include <utility>

#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/client/embedded_cluster.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "runtime/format/json/json_forms.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kHelpColumn = 28;

/// Arguments that every command takes besides its own.
struct GlobalArguments {
  bool json = false;
  bool help = false;
  std::string cluster;

  std::vector<Argument> List() {
    return {{"--cluster", "FILE", "key file of the cluster (default: PATCHBAY_CLUSTER)", &cluster},
            {"--json", "", "write one JSON object to stdout, the rest to stderr", &json},
            {"--help", "", "this text; also -h, or `patchbay help COMMAND`", &help}};
  }
};

std::vector<std::string> SplitName(const std::string& name) {
  const std::size_t space = name.find(' ');
  if (space == std::string::npos) return {name};
  return {name.substr(0, space), name.substr(space + 1)};
}

/// Global flags may stand before the command: moves them behind it. False when only flags are left.
bool BringCommandForward(std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].rfind('-', 0) != 0) {
      std::rotate(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i),
                  words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      // A second word of the command stands right behind the first.
      if (i > 0 && i + 1 < words.size()) {
        std::rotate(words.begin() + 1, words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    words.end());
      }
      return true;
    }
    if (words[i] == "--cluster") ++i;
  }
  return false;
}

struct Found {
  const CommandEntry* entry = nullptr;
  std::size_t words = 0;
};

Found FindCommand(const std::vector<std::string>& words) {
  for (const CommandEntry& entry : CommandTable()) {
    const std::vector<std::string> name = SplitName(entry.name);
    if (words.size() < name.size()) continue;
    if (std::equal(name.begin(), name.end(), words.begin())) return {&entry, name.size()};
  }
  return {};
}

/// "unknown command 'stat': did you mean 'status'?", or the commands of a first word that is right.
std::string UnknownCommand(const std::vector<std::string>& words) {
  std::vector<std::string> first_words, whole, seconds;
  for (const CommandEntry& entry : CommandTable()) {
    const std::vector<std::string> name = SplitName(entry.name);
    first_words.push_back(name[0]);
    whole.push_back(entry.name);
    if (name.size() == 2 && name[0] == words[0]) seconds.push_back(entry.name);
  }
  if (!seconds.empty()) {
    if (words.size() == 1)
      return StrCat("'", words[0], "' needs a second word: one of ", StrJoin(seconds, ", "));
    return StrCat("unknown command '", words[0], " ", words[1], "': one of ",
                  StrJoin(seconds, ", "));
  }
  const std::string nearest = Nearest(words[0], first_words);
  return StrCat("unknown command '", words[0], "'",
                nearest.empty() ? std::string() : StrCat(": did you mean '", nearest, "'?"));
}

std::string HelpLine(const std::string& left, const std::string& right) {
  std::string line = "  " + left;
  if (line.size() + 2 > kHelpColumn) return StrCat(line, "  ", right, "\n");
  line.resize(kHelpColumn, ' ');
  return StrCat(line, right, "\n");
}

/// The commands that share a first word, as the overview lists them.
struct CommandGroup {
  const char* word;
  const char* summary;
};
constexpr CommandGroup kGroups[] = {{"node", "nodes, and which of them get no work"},
                                    {"labels", "annotations as label sets"},
                                    {"config", "what a run config says and would stream"},
                                    {"synth", "make images for trials"},
                                    {"key", "who may speak to the cluster"},
                                    {"teams", "shares of the cluster"}};

const CommandGroup* GroupOf(const std::string& word) {
  const auto* const group = std::find_if(std::begin(kGroups), std::end(kGroups),
                                         [&](const auto& one) { return one.word == word; });
  return group == std::end(kGroups) ? nullptr : group;
}

/// Commands that people do not type.
bool IsForPrograms(const CommandEntry& entry) {
  return entry.make == &MakeServeRing || entry.make == &MakeNodeReady;
}

/// "key new|list|revoke": the commands of the group.
std::string GroupLine(const CommandGroup& group) {
  std::vector<std::string> seconds;
  for (const CommandEntry& entry : CommandTable()) {
    const std::vector<std::string> name = SplitName(entry.name);
    if (name[0] == group.word && !IsForPrograms(entry)) seconds.push_back(name[1]);
  }
  return HelpLine(StrCat(group.word, " ", StrJoin(seconds, "|")), group.summary);
}

/// The text of `patchbay key --help`: the commands of that first word, and for `config` every key
/// of a run config; "" when it has none.
std::string GroupHelp(const std::vector<std::string>& words, const plan::OpTable& ops) {
  if (words.size() > 1 && words[1].rfind('-', 0) != 0) return "";
  std::vector<std::string> seconds;
  std::string text;
  for (const CommandEntry& entry : CommandTable()) {
    const std::vector<std::string> name = SplitName(entry.name);
    if (name.size() < 2 || name[0] != words[0]) continue;
    seconds.push_back(name[1]);
    text += HelpLine(entry.name, entry.summary);
  }
  if (seconds.empty()) return "";
  text = StrCat("usage: patchbay ", words[0], " ", StrJoin(seconds, "|"), " [arguments] [flags]\n",
                text, "see: patchbay ", words[0], " ", seconds[0], " --help");
  return words[0] == "config" ? StrCat(text, "\n\n", KeyPage(ops)) : text;
}

std::string ArgumentLeft(const Argument& argument) {
  std::string left = argument.name;
  if (!argument.choices.empty() && argument.value.empty()) {
    return StrCat(left, " ", StrJoin(argument.choices, "|"));
  }
  if (!argument.value.empty()) left += " " + argument.value;
  return left;
}

/// The widest line of help.
constexpr std::size_t kScreenColumns = 100;

std::string UsageLine(const CommandEntry& entry, const std::vector<Argument>& arguments) {
  std::string line = StrCat("usage: patchbay ", entry.name);
  for (const Argument& argument : arguments) {
    if (argument.IsFlag() && !argument.required) continue;
    const bool many = std::holds_alternative<std::vector<std::string>*>(argument.target);
    const std::string shown = ArgumentLeft(argument) + (many ? "..." : "");
    line += argument.required ? " " + shown : " [" + shown + "]";
  }
  const std::string_view flags = "[flags] [--help]\n";
  return StrCat(line, line.size() + flags.size() <= kScreenColumns ? " " : "\n      ", flags);
}

/// The exit code of a command that is done, unless its result went nowhere.
int CodeOf(ExitCode code, Terminal& terminal) {
  if (terminal.written().ok()) return static_cast<int>(code);
  terminal.Error(MessageOf(terminal.written()));
  return static_cast<int>(code == ExitCode::kDone ? ExitCode::kFailed : code);
}

/// Why a command failed, for programs: the last line of stderr with --json.
void NoteError(Terminal& terminal, const Status& status) {
  Json error = JsonOf(OutcomeOf(status));
  error["text"] = std::string(MessageOf(status));
  terminal.Failure({{"error", error}});
}

/// Prints one line, and below it the messages of a cluster's processes if they are the cause.
void SayError(Terminal& terminal, const Status& status) {
  const std::string said = client::SaidBy(status);
  std::string_view text = MessageOf(status);
  if (!said.empty() && text.ends_with("\n" + said)) text.remove_suffix(said.size() + 1);
  terminal.Error(text);
  if (!said.empty()) terminal.NoteText(said);
}

int Finish(Terminal& terminal, const CommandEntry& entry, const StatusOr<ExitCode>& outcome) {
  terminal.EndProgress();
  if (outcome.ok()) return CodeOf(*outcome, terminal);
  SayError(terminal, outcome.status());
  const bool usage = IsUsageError(outcome.status());
  if (usage) terminal.Note(StrCat("see: patchbay ", entry.name, " --help"));
  NoteError(terminal, outcome.status());
  if (usage) return static_cast<int>(ExitCode::kUsage);
  // After a signal any error may be that of another process that got it, too.
  return static_cast<int>(Interrupted() ? ExitCode::kStopped : ExitCode::kFailed);
}

int RunCommand(const CommandEntry& entry, std::vector<std::string> words,
               const client::Environment& environment) {
  const std::unique_ptr<Command> command = entry.make();
  GlobalArguments global;
  std::vector<Argument> arguments = command->Arguments();
  const std::vector<Argument> common = global.List();
  arguments.insert(arguments.end(), common.begin(), common.end());
  const Status parsed = ParseArguments(arguments, std::move(words));
  Terminal terminal(global.json);
  if (!parsed.ok()) return Finish(terminal, entry, AsUsageError(parsed));
  Session session{terminal, environment,
                  global.cluster.empty() ? environment.cluster_file : global.cluster};
  return Finish(terminal, entry, command->Run(session));
}

/// Turns `-h` and `help COMMAND` into `--help`.
void SpellHelp(std::vector<std::string>& words) {
  const auto values = std::find(words.begin(), words.end(), "--");
  std::replace(words.begin(), values, std::string("-h"), std::string("--help"));
  if (words.empty() || words.front() != "help") return;
  words.erase(words.begin());
  words.push_back("--help");
}

}  // namespace

const std::vector<CommandEntry>& CommandTable() {
  static const std::vector<CommandEntry> table = {
      {"ingest", "convert slides to OME-Zarr stores; after a kill, run it again", &MakeIngest},
      {"convert", "make stores of another codec, or slides, of stores", &MakeConvert, kConvertNote},
      {"stream", "stream a run config's batches, as a trainer receives them", &MakeStream,
       kStreamNote},
      {"map", "run a model over every patch, and write its results", &MakeMap, kMapNote},
      {"score", "compare results of map with a label set", &MakeScore},
      {"spectra", "measure the spectra of slides or stores, with plots", &MakeSpectra,
       kSpectraNote},
      {"spectra-diff", "compare two results of spectra", &MakeSpectraDiff, kSpectraDiffNote},
      {"labels import", "import annotations", &MakeLabelsImport, kLabelsImportNote},
      {"labels tissue", "find tissue", &MakeLabelsTissue, kLabelsTissueNote},
      {"labels compare", "compare readers' sets", &MakeLabelsCompare, kLabelsCompareNote},
      {"labels majority", "make a majority set", &MakeLabelsMajority, kLabelsMajorityNote},
      {"labels export", "export a set", &MakeLabelsExport, LabelsExportNote()},
      {"labels list", "list sets", &MakeLabelsList},
      {"labels show", "show a set's classes", &MakeLabelsShow},
      {"labels prune", "prune revisions", &MakeLabelsPrune, kLabelsPruneNote},
      {"labels delete", "delete a set", &MakeLabelsDelete, kLabelsDeleteNote},
      {"scan", "make a table of slides from their headers", &MakeScan},
      {"inspect", "show what a store or slide holds", &MakeInspect},
      {"preview", "draw a contact sheet of stores, or of a run's patches", &MakePreview},
      {"verify", "read a whole store and check it against its digests", &MakeVerify},
      {"forget", "remove all that derives from one slide or patient", &MakeForget, kForgetNote},
      {"config print", "print a run config with defaults", &MakeConfigPrint},
      {"config check", "show what a run config would stream", &MakeConfigCheck},
      {"lock", "pin a run to the current state of its data", &MakeLock, kLockNote},
      {"synth ct", "make a DICOM series", &MakeSynthCt},
      {"synth slide", "make a realistic slide", &MakeSynthSlide},
      {"synth volume", "make a CT volume", &MakeSynthVolume},
      {"doctor", "show what this machine offers and lacks", &MakeDoctor},
      {"up", "start a cluster and run its first node until stopped", &MakeUp, kUpNote},
      {"join", "run another node of a cluster until stopped", &MakeJoin, kJoinNote},
      {"down", "stop the cluster", &MakeDown},
      {"site run", "run a trainer with a cluster on every node of a job", &MakeSiteRun,
       kSiteRunNote},
      {"node list", "list nodes", &MakeNodeList},
      {"node drain", "give a node no more work, and let it finish", &MakeNodeDrain},
      {"node resume", "give it work again", &MakeNodeResume},
      {"node label", "mark it for people", &MakeNodeLabel},
      {"node ready", "tell a probe whether this home's node serves", &MakeNodeReady,
       kNodeReadyNote},
      {"status", "show nodes, workers and jobs", &MakeStatus, kSeenClustersNote},
      {"top", "watch nodes, streams, jobs and failures on one screen", &MakeTop},
      {"dashboard", "let the browser that shows a code see the dashboard", &MakeDashboard},
      {"key new", "make a key file", &MakeKeyCreate, kKeyNote},
      {"key list", "list all keys", &MakeKeyList},
      {"key revoke", "revoke a key", &MakeKeyRevoke},
      {"key pseudonym", "share pseudonyms", &MakeKeyPseudonym, kKeyPseudonymNote},
      {"key team", "move a key to a team", &MakeKeyTeam},
      {"teams check", "check a file of teams", &MakeTeamsCheck},
      {"teams apply", "put a file of teams in force", &MakeTeamsApply},
      {"teams show", "show shares: what teams may have, want and have", &MakeTeamsShow},
      {"jobs", "list all jobs", &MakeJobs, kSeenClustersNote},
      {"job", "show a job: its progress, what failed and why", &MakeJob},
      {"why", "say why a job waits, and what would start it", &MakeWhy},
      {"wait", "wait for a job, showing its progress", &MakeWait},
      {"cancel", "cancel a job", &MakeCancel},
      {"hold", "keep a job from starting more work", &MakeHold},
      {"release", "let a held job go on", &MakeRelease},
      {"priority", "let a job go before others, or behind them", &MakePriority},
      {"retry", "run a job's failed tasks again", &MakeRetry},
      {"logs", "show what happened in a job", &MakeLogs},
      {"usage", "show what work cost, by team, user or job", &MakeUsage},
      {"serve-ring", "hand a stream's ring to the process that started this one", &MakeServeRing},
  };
  return table;
}

std::string OverviewText() {
  std::string text =
      "patchbay: turns slides into training batches in the trainer's memory\n"
      "usage: patchbay COMMAND [arguments] [--cluster FILE] [--json] [--help] | --version\n";
  const CommandGroup* last = nullptr;
  for (const CommandEntry& entry : CommandTable()) {
    if (IsForPrograms(entry)) continue;
    const CommandGroup* const group = GroupOf(SplitName(entry.name)[0]);
    if (group == nullptr) text += HelpLine(entry.name, entry.summary);
    if (group != nullptr && group != last) text += GroupLine(*group);
    last = group;
  }
  text += HelpLine("help COMMAND", "explain a command, as `patchbay COMMAND --help` does");
  return text +
         "Without --cluster or PATCHBAY_CLUSTER, commands use the one of `up` here, or start one.";
}

std::string CommandHelp(const CommandEntry& entry) {
  const std::unique_ptr<Command> command = entry.make();
  const std::vector<Argument> arguments = command->Arguments();
  std::string text = UsageLine(entry, arguments) + entry.summary + "\n";
  for (const Argument& argument : arguments) {
    text += HelpLine(ArgumentLeft(argument), argument.help);
  }
  GlobalArguments global;
  for (const Argument& argument : global.List()) {
    if (argument.name == "--help") continue;  // in the first line
    text += HelpLine(ArgumentLeft(argument), argument.help);
  }
  text += entry.note;
  text.pop_back();  // the terminal ends the line
  return text;
}

int RunCommandLine(std::vector<std::string> words, const client::Environment& environment) {
  SpellHelp(words);
  const auto values = std::find(words.begin(), words.end(), "--");
  const bool help = std::find(words.begin(), values, "--help") != values;
  Terminal terminal(false);
  if (!BringCommandForward(words)) {
    if (help) {
      terminal.SayText(OverviewText());
      return CodeOf(ExitCode::kDone, terminal);
    }
    if (std::find(words.begin(), values, "--version") != values) {
      terminal.Say(StrCat("patchbay ", PATCHBAY_VERSION));
      return CodeOf(ExitCode::kDone, terminal);
    }
    if (words.empty()) {
      terminal.NoteText(OverviewText());
    } else {
      terminal.Error(StrCat("'", words[0], "' is not a command"));
      terminal.Note("see: patchbay --help");
    }
    return static_cast<int>(ExitCode::kUsage);
  }
  const Found found = FindCommand(words);
  if (found.entry == nullptr) {
    const std::string group = help ? GroupHelp(words, *environment.ops) : "";
    if (!group.empty()) {
      terminal.SayText(group);
      return CodeOf(ExitCode::kDone, terminal);
    }
    terminal.Error(UnknownCommand(words));
    terminal.Note("see: patchbay --help");
    return static_cast<int>(ExitCode::kUsage);
  }
  if (help) {
    terminal.SayText(CommandHelp(*found.entry));
    return CodeOf(ExitCode::kDone, terminal);
  }
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(found.words));
  return RunCommand(*found.entry, std::move(words), environment);
}

}  // namespace patchbay::cli
