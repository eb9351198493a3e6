#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "tools/report/report_data.h"

// A study: experiments that are compared, each trained with several seeds.
namespace dgc {

struct StudyRun {
  std::string name;
  std::string config;                  // path of the config file
  std::vector<std::string> overrides;  // "optimizer.sparsity=0.99", as --set takes them, without seed and name
  std::vector<uint64_t> seeds;
  double published = kNoNumber;  // what the literature reports of the outcome, in the metric's own unit: 0.9375
  std::string source;            // and where: "Lin et al. (2018), table 2"
  std::string reference;         // the run with which this one is compared; "": none

  std::vector<std::string> overrides_for(uint64_t seed) const;
};

struct Study {
  std::string name;
  std::vector<StudyRun> runs;
};

// Reads and checks a study; docs/studies.md lists its keys. Paths of configs are relative to the study's folder. Each
// config is read with the run's overrides, so that a mistake shows before anything is trained. Throws UserError: one
// sentence that names the file and the key.
Study load_study(const std::string& path);

// One training of a study.
struct StudyTraining {
  const StudyRun* run = nullptr;
  uint64_t seed = 0;
  std::filesystem::path directory;  // OUT/NAME/seedN

  Config config;  // as the study wants it

  std::string name() const;  // "dgc seed 2"
};
// Reads the config of each once.
std::vector<StudyTraining> trainings_of(const Study&, const std::filesystem::path& out);

// What a study has found so far: a row for each run.
struct StudyTable {
  std::vector<std::string> columns;
  std::vector<TableRow> rows;  // `what` is the run's name
  std::vector<std::string> notes;
};

// Reads what the trainings have written; `failures` become notes. A run without a finished step is a row of dashes.
// `trainings` are all of the study, and `groups` the runs that have something to show, in the order of the study.
StudyTable study_table(const Study&, const std::vector<StudyTraining>& trainings, const std::vector<RunGroup>& groups,
                       const std::vector<std::string>& failures);
// A training whose files are damaged becomes a note.
std::vector<RunGroup> study_groups(const Study&, const std::vector<StudyTraining>&, std::vector<std::string>& notes);

}  // namespace dgc
