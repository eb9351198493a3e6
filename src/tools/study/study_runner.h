#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tools/study/study_training.h"
#include "train/ranks/children.h"

namespace dgc {

// Trains what a study lacks, so many trainings at once, each as a child process, on a GPU of its own where there are as
// many.
class StudyRunner {
 public:
  StudyRunner(const std::vector<StudyTraining>& missing, int jobs);

  // Returns a note for each training that failed. Throws Interrupted once all children have saved their state.
  std::vector<TrainingNote> run();
  int exit_code() const { return exit_code_; }  // of the first that failed; 0: none has

 private:
  using Clock = std::chrono::steady_clock;

  // A training, and its place among those that run: the least number that no other has.
  struct Running {
    StudyTraining training;
    int place;
  };

  int free_place() const;
  void start_next(const HeldSignals&);
  void start(const StudyTraining&, const HeldSignals&);  // throws UserError for one that cannot be started
  void collect();
  void tell_progress() const;
  void fail(const StudyTraining&, const std::string& why, int code);

  std::vector<StudyTraining> all_;
  double made_before_ = 0;  // epochs of all of them, at the start
  std::deque<StudyTraining> waiting_;
  std::map<pid_t, Running> running_;
  std::vector<TrainingNote> failures_;
  size_t done_ = 0;
  int jobs_ = 1, exit_code_ = 0;
  bool stopped_ = false;  // nothing more is started
  bool told_ = false;     // the trainings that run have been told to stop
  Clock::time_point start_ = Clock::now();
};

}  // namespace dgc
