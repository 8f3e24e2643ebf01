// The makers of all commands, each defined in the file of its name, of its first word, or of its
// subject.
#pragma once

#include <memory>
#include <string>

#include "runtime/cli/command.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::cli {

std::unique_ptr<Command> MakeCancel();
std::unique_ptr<Command> MakeConfigCheck();
std::unique_ptr<Command> MakeConfigPrint();
std::unique_ptr<Command> MakeConvert();
std::unique_ptr<Command> MakeDoctor();
std::unique_ptr<Command> MakeDown();
std::unique_ptr<Command> MakeHold();
std::unique_ptr<Command> MakeIngest();
std::unique_ptr<Command> MakeInspect();
std::unique_ptr<Command> MakeJob();
std::unique_ptr<Command> MakeJobs();
std::unique_ptr<Command> MakeJoin();
std::unique_ptr<Command> MakeKeyList();
std::unique_ptr<Command> MakeKeyCreate();
std::unique_ptr<Command> MakeKeyPseudonym();
std::unique_ptr<Command> MakeKeyRevoke();
std::unique_ptr<Command> MakeKeyTeam();
std::unique_ptr<Command> MakeLabelsCompare();
std::unique_ptr<Command> MakeLabelsDelete();
std::unique_ptr<Command> MakeLabelsExport();
std::unique_ptr<Command> MakeLabelsImport();
std::unique_ptr<Command> MakeLabelsList();
std::unique_ptr<Command> MakeLabelsMajority();
std::unique_ptr<Command> MakeLabelsPrune();
std::unique_ptr<Command> MakeLabelsShow();
std::unique_ptr<Command> MakeLabelsTissue();
std::unique_ptr<Command> MakeLock();
std::unique_ptr<Command> MakeLogs();
std::unique_ptr<Command> MakeMap();
std::unique_ptr<Command> MakeNodeDrain();
std::unique_ptr<Command> MakeNodeList();
std::unique_ptr<Command> MakeNodeReady();
std::unique_ptr<Command> MakeNodeResume();
std::unique_ptr<Command> MakeNodeLabel();
std::unique_ptr<Command> MakePreview();
std::unique_ptr<Command> MakePriority();
std::unique_ptr<Command> MakeRelease();
std::unique_ptr<Command> MakeRetry();
std::unique_ptr<Command> MakeServeRing();
std::unique_ptr<Command> MakeScan();
std::unique_ptr<Command> MakeScore();
std::unique_ptr<Command> MakeSiteRun();
std::unique_ptr<Command> MakeSpectra();
std::unique_ptr<Command> MakeSpectraDiff();
std::unique_ptr<Command> MakeStatus();
std::unique_ptr<Command> MakeTop();
std::unique_ptr<Command> MakeDashboard();
std::unique_ptr<Command> MakeStream();
std::unique_ptr<Command> MakeSynthCt();
std::unique_ptr<Command> MakeSynthSlide();
std::unique_ptr<Command> MakeSynthVolume();
std::unique_ptr<Command> MakeTeamsApply();
std::unique_ptr<Command> MakeTeamsCheck();
std::unique_ptr<Command> MakeTeamsShow();
std::unique_ptr<Command> MakeUp();
std::unique_ptr<Command> MakeUsage();
std::unique_ptr<Command> MakeVerify();
std::unique_ptr<Command> MakeForget();
std::unique_ptr<Command> MakeWait();
std::unique_ptr<Command> MakeWhy();

/// Text that `--help` of these commands shows after their arguments.
extern const char kConvertNote[];
extern const char kJoinNote[];
extern const char kKeyNote[];
extern const char kKeyPseudonymNote[];
extern const char kLabelsCompareNote[];
extern const char kLabelsDeleteNote[];
extern const char kLabelsImportNote[];
extern const char kLabelsMajorityNote[];
extern const char kLabelsPruneNote[];
extern const char kLabelsTissueNote[];
extern const char kForgetNote[];
extern const char kLockNote[];
extern const char kMapNote[];
extern const char kNodeReadyNote[];
extern const char kSeenClustersNote[];
extern const char kSiteRunNote[];
extern const char kSpectraDiffNote[];
extern const char kSpectraNote[];
extern const char kStreamNote[];

/// Every key of a run config with its meaning and default, as YAML with comments.
std::string KeyPage(const plan::OpTable& ops);

extern const char kUpNote[];
std::string LabelsExportNote();

}  // namespace patchbay::cli
