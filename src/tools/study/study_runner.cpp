#include "tools/study/study_runner.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "config/config.h"
#include "run/file_io.h"
#include "run/number_text.h"
#include "run/run_directory.h"
#include "tensor/cores.h"
#include "tensor/counted.h"
#include "tensor/errors.h"
#include "tensor/printable.h"
#include "train/ranks/failure.h"
#include "train/ranks/interrupt.h"
#include "train/ranks/rank_backend.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

// The last thing that a child has said, without the mark in front of it.
std::string last_words(const fs::path& output) {
  std::ifstream file(output);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  const size_t colon = last.find("error: ");
  return colon == std::string::npos ? last : last.substr(colon + 7);
}

// Throws UserError where a child's words cannot be kept, or as require_own_file() does.
void require_own_files(const StudyTraining& training) {
  const fs::path output = training.output();
  for (const fs::path& file : {output, training.config_file()}) require_own_file(file);
  errno = 0;
  if (std::ofstream(output, std::ios::app)) return;
  throw_user_error("cannot write {}: {}", output.string(), error_text());
}

}  // namespace

StudyRunner::StudyRunner(const std::vector<StudyTraining>& missing, int jobs)
    : all_(missing), waiting_(missing.begin(), missing.end()), jobs_(jobs) {
  for (const StudyTraining& training : all_) made_before_ += epochs_saved(training);
}

std::vector<TrainingNote> StudyRunner::run() {
  const HeldSignals signals;
  while (!waiting_.empty() || !running_.empty()) {
    while (!stopped_ && !waiting_.empty() && running_.size() < static_cast<size_t>(jobs_)) start_next(signals);
    if (running_.empty()) {
      if (stopped_) break;
      continue;  // what was to start has failed already
    }
    constexpr int kSecondsBetweenLines = 60;
    const std::optional<int> signal = signals.next_within(kSecondsBetweenLines);
    if (!signal) {
      tell_progress();
    } else if (*signal == SIGCHLD) {
      collect();
    } else {
      const bool one = running_.size() == 1;
      if (!told_) {
        spdlog::warn("stopping: {} {} state", counted(std::ssize(running_), "training"),
                     one ? "saves its" : "save their");
      }
      told_ = stopped_ = true;
      for (const auto& [child, running] : running_) send_signal(child, *signal);
    }
  }
  if (stopped_) throw Interrupted();
  return failures_;
}

void StudyRunner::fail(const StudyTraining& training, const std::string& why, int code) {
  failures_.push_back({training.name(), fmt::format("{} failed: {}", training.name(), why)});
  spdlog::error("{}", printable(failures_.back().text));
  if (exit_code_ == 0) exit_code_ = code;
}

void StudyRunner::start_next(const HeldSignals& signals) {
  const StudyTraining training = waiting_.front();
  waiting_.pop_front();
  try {
    start(training, signals);
  } catch (const std::exception& error) {  // such as of a folder that is not what it should be
    const Complaint c = complaint(error);
    fail(training, c.text, c.users ? kUserError : kOurError);
  }
}

int StudyRunner::free_place() const {
  int place = 0;
  while (std::ranges::any_of(running_, [&](const auto& entry) { return entry.second.place == place; })) ++place;
  return place;
}

void StudyRunner::start(const StudyTraining& training, const HeldSignals& signals) {
  const Standing standing = standing_of(training);
  if (standing.state == Standing::State::refused) throw UserError(standing.why);
  std::vector<std::string> command = {own_program(), "train", "--out", training.directory.string()};
  const bool goes_on = standing.state != Standing::State::fresh;
  if (goes_on) {
    command.insert(command.end(),
                   {"--resume", "--set", fmt::format("threads={}", run_config(training.directory).threads)});
  } else if (training.config.threads == 0 && jobs_ > 1) {
    const int threads = std::max(1, usable_cores() / (jobs_ * static_cast<int>(training.config.ranks)));
    command.insert(command.end(), {"--set", fmt::format("threads={}", threads)});
  }
  const int place = free_place();
  const std::string gpu = jobs_ > 1 ? gpu_in_turn(training.config, place) : "";
  // Each would take for more workers at once the memory that it finds free, before the others have taken theirs.
  if (training.config.workers_at_once == 0 && share_gpus(training.config, jobs_)) {
    command.insert(command.end(), {"--set", "workers_at_once=1"});
  }
  if (!gpu.empty()) setenv(kGpuVariable, gpu.c_str(), 1);  // not the config, which says "auto" on any machine
  fs::create_directories(training.directory.parent_path());
  require_own_files(training);
  // Whoever edits the study's config meanwhile changes no training of this study.
  write_if_changed(training.config_file(), resolved_json(training.config));
  command.insert(command.end(), {"--", training.config_file().string()});
  running_.emplace(start_child(command, signals, SIGTERM, training.output()), Running{training, place});
  spdlog::info("{}: {}{}", training.name(), goes_on ? "goes on" : "starts", gpu.empty() ? "" : " on cuda:" + gpu);
}

void StudyRunner::collect() {
  int status = 0;
  for (pid_t child = 0; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto found = running_.find(child);
    if (found == running_.end()) continue;
    const StudyTraining training = found->second.training;
    running_.erase(found);
    const int code = exit_code_of(status);
    const bool by_signal = told_ && code > kChildSignal;  // as before it has loaded its data
    if (code == kInterrupted || by_signal) {
      // A second signal would end those that somebody has stopped as well, before they have saved. So they get none.
      if (!stopped_) {
        spdlog::warn("somebody has stopped {} alone, and so the study starts no more{}", training.name(),
                     running_.empty() ? "" : fmt::format("; Ctrl-C stops the {} beside it too", running_.size()));
      }
      stopped_ = true;
    } else if (code == kChildNotStarted) {
      fail(training, "it could not be started: " + last_words(training.output()), kUserError);
    } else if (const Standing standing = standing_of(training); code == 0 && standing.state != Standing::State::done) {
      // Files were removed or changed behind it.
      const std::string lost = fmt::format("it has ended, and its result is not in {}", training.directory.string());
      fail(training, standing.why.empty() ? lost : standing.why, kUserError);
    } else if (code == 0) {
      ++done_;
      spdlog::info("{}: done, {} of {}", training.name(), done_, all_.size());
    } else {
      const std::string words = last_words(training.output());
      fail(training, code >= kChildSignal || words.empty() ? "it " + end_text(status) : words, code);
    }
  }
}

void StudyRunner::tell_progress() const {
  double made = -made_before_, to_do = 0;
  std::string where;
  // An epoch of one that has not begun has as many steps as those of other seeds.
  const auto left = [this](const StudyTraining& training) {
    double steps = 0;
    for (const StudyTraining& other : all_) {
      if (steps == 0 && other.run == training.run) steps = steps_per_epoch(other);
    }
    return epochs_left(training, steps);
  };
  for (const StudyTraining& training : all_) made += epochs_made(training);
  for (const StudyTraining& training : waiting_) {
    const double lost = epochs_made(training) - epochs_saved(training);  // it goes on from its newest checkpoint
    made -= lost;
    if (!stopped_) to_do += left(training) + lost;
  }
  for (const auto& [child, running] : running_) {
    const StudyTraining& training = running.training;
    to_do += left(training);
    where += fmt::format("{}{} epoch {:.1f} of {}", where.empty() ? "" : ", ", training.name(), epochs_made(training),
                         training.config.training.epochs);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const std::string rest = made > 0 ? fmt::format("; about {} left", duration_text(seconds * to_do / made)) : "";
  spdlog::info("{} of {} done; {}{}", done_, all_.size(), where, rest);
}

}  // namespace dgc
