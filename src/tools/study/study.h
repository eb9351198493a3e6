#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/metric.h"

// A study: experiments that are compared, each trained with several seeds.
namespace dgc {

inline constexpr const char* kStudyReport = "report.html";  // in the study's folder

struct StudyRun {
  std::string name;
  std::string config;                  // path of the config file
  std::vector<std::string> overrides;  // "optimizer.sparsity=0.99", as --set takes them, without seed, name and output
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

}  // namespace dgc
