#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/options.h"
#include "tools/study/study.h"

namespace dgc {

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

// What lies in the training's directory. A damaged one has made nothing: it fails when its turn comes.
double epochs_made(const StudyTraining&);
// What is left to make, as far as is known: of a training that ends with max_steps only once it has made a step, or
// where it is said how many steps an epoch has.
double epochs_left(const StudyTraining&, double steps_per_epoch = 0);

// Whether there are steps or checkpoints in the training's directory.
bool has_begun(const StudyTraining&);
// Whether the training has come to the end that the study asks for now. One that has diverged is given to dgc train
// again, which says so.
bool is_done(const StudyTraining&);
// What keeps the training from going on in its directory, and what is there from being its result; or "".
std::string other_experiment(const StudyTraining&);
// Why what lies in the training's directory does not count, or "".
std::string unsound(const StudyTraining&);

}  // namespace dgc
