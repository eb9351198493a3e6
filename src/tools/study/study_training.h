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

  std::string name() const;                   // "dgc seed 2"
  std::filesystem::path config_file() const;  // what dgc train reads: `config` with every default filled in
  std::filesystem::path output() const;       // what dgc train has printed
};
// Reads the config of each once, and throws the UserError of one that is wrong.
std::vector<StudyTraining> trainings_of(const Study&, const std::filesystem::path& out);

// The epochs that the training has made; 0 where its files are damaged, so that it fails when its turn comes.
double epochs_made(const StudyTraining&);
// The epochs that it had made in the checkpoint from which it goes on; 0 where there is none.
double epochs_saved(const StudyTraining&);
// Steps of an epoch, by those that it has made; 0 where it has made none.
double steps_per_epoch(const StudyTraining&);
// What is left to make, as far as is known: of a training that ends with max_steps only once it has made a step, or
// where it is said how many steps an epoch has.
double epochs_left(const StudyTraining&, double epoch_steps = 0);

// What a reader has to know of a training: that it failed, or why it does not count.
struct TrainingNote {
  std::string training;  // its name
  std::string text;      // a sentence that begins with the name
};

// What lies in a training's directory.
struct Standing {
  enum class State {
    fresh,    // nothing
    begun,    // something that dgc train goes on with
    done,     // the result that the study asks for now
    refused,  // something that is not what the study asks for, and cannot become it
  };
  State state = State::fresh;
  std::string why;  // it is refused
};
Standing standing_of(const StudyTraining&);

// Throws UserError where a file that a study writes is a pipe, whose other end nobody may ever open, or a link, which
// may lead to a file of somebody else's.
void require_own_file(const std::filesystem::path&);

}  // namespace dgc
