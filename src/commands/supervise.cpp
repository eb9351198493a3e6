#include "commands/supervise.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>

#include "tensor/counted.h"
#include "tensor/errors.h"
#include "train/ranks/children.h"
#include "train/ranks/failure.h"
#include "train/ranks/interrupt.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

std::string path_of(const std::string& program) {
  const auto runs = [](const std::string& path) { return access(path.c_str(), X_OK) == 0 && !fs::is_directory(path); };
  if (program.find('/') != std::string::npos) return runs(program) ? program : "";
  const char* const variable = std::getenv("PATH");
  std::istringstream folders(variable != nullptr ? variable : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string path = (fs::path(folder) / program).string();
    if (runs(path)) return path;
  }
  return "";
}

std::vector<std::string> command_of(const SuperviseOptions& options) {
  std::vector<std::string> words = options.launcher;
  if (!words.empty()) {
    const std::string path = path_of(words[0]);
    if (path.empty()) {
      throw_user_error("--launch: there is no program {} on the PATH; install it, or give its whole path", words[0]);
    }
    words[0] = path;
  }
  words.push_back(own_program());
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  return words;
}

struct End {
  int status = 0;   // status of waitpid()
  int stopped = 0;  // the signal by which the supervisor was asked to stop meanwhile; 0: none

  int exit_code() const { return exit_code_of(status); }
  // Whether another attempt makes sense: the child is not done, was not given wrong input, and nobody wanted it to end.
  bool died() const {
    const int code = exit_code();
    return stopped == 0 && code != 0 && code != kUserError && code != kInterrupted && code != kChildNotStarted;
  }
};

bool is_mpirun(const fs::path& program) {
  const std::string name = program.filename().string();  // mpirun.openmpi, mpiexec.hydra
  return std::ranges::any_of(std::initializer_list<const char*>{"mpirun", "mpiexec", "orterun", "prterun"},
                             [&](const char* start) { return name.starts_with(start); });
}

// What a process runs; "" where that cannot be known.
fs::path program_of(pid_t process) {
  std::error_code error;
  return fs::read_symlink(fmt::format("/proc/{}/exe", process), error);
}

// mpirun kills its processes a moment after SIGINT or SIGTERM, before they have saved. It passes SIGUSR1 on to them,
// and to nobody while it has none.
int gentle(const fs::path& program, int signal) {
  std::error_code error;
  return is_mpirun(program) || is_mpirun(fs::canonical(program, error)) ? SIGUSR1 : signal;
}

// The same for a program that runs, and may have become another one since it was started, as `env mpirun` does.
int gentle(pid_t child, const fs::path& program, int signal) {
  return gentle(program_of(child), gentle(program, signal));
}

void tell_of_standstill(int signal) {
  const bool reads = signal == SIGTTIN;
  spdlog::warn("the training stands still, stopped by signal {} ({}){}", signal, strsignal(signal),
               reads ? ": it asks the terminal, which is not its own; let --launch ask for nothing, as ssh does for a "
                       "password"
                     : "; kill -CONT lets it go on");
}

// Whether the terminal's settings are this process's to change: in the background they are a shell's.
bool has_terminal() { return tcgetpgrp(STDIN_FILENO) == getpgrp(); }

std::optional<termios> terminal_settings() {
  termios settings{};
  if (!has_terminal() || tcgetattr(STDIN_FILENO, &settings) != 0) return std::nullopt;
  return settings;
}

End wait_for(pid_t child, const std::string& program, const HeldSignals& signals,
             const std::optional<termios>& terminal) {
  End end;
  int status = 0, passed = 0;
  std::chrono::steady_clock::time_point last;
  while (true) {
    const int signal = signals.next();
    if (signal != SIGCHLD) {
      end.stopped = signal;
      const auto now = std::chrono::steady_clock::now();
      if (passed > 0 && now - last < std::chrono::seconds(kSameSignal)) continue;
      send_signal(child, ++passed <= 2 ? gentle(child, program, signal) : signal);
      last = now;
      continue;
    }
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
      if (ended != child) continue;  // its launcher had gone before it
      if (WIFSTOPPED(status)) {
        // It may have turned off the echo, as ssh does to ask for a password.
        if (terminal && has_terminal()) tcsetattr(STDIN_FILENO, TCSANOW, &*terminal);
        tell_of_standstill(WSTOPSIG(status));
        continue;
      }
      end.status = status;
      return end;
    }
  }
}

// Launchers hand their environment on to the processes that they start here. By this variable the supervisor knows
// them from other children: those of a shell that it has replaced, and all that lose their parent in a container of
// which it is the first process.
constexpr const char* kMark = "DGC_SUPERVISOR";

std::string environment_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// While a process becomes another program, it has no environment for a moment.
std::string settled_environment_of(pid_t process) {
  std::string environment = environment_of(process);
  for (int look = 0; look < 10 && environment.empty() && !program_of(process).empty(); ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    environment = environment_of(process);
  }
  return environment;
}

std::vector<pid_t> children_of(pid_t process) {
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", process));
  return {std::istream_iterator<pid_t>(children), {}};
}

// Children that are of an earlier attempt. One that ends may be, as it has neither an environment nor a program left.
std::vector<pid_t> left_over() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  const std::string mark = fmt::format("{}={}", kMark, getpid());
  std::vector<pid_t> found;
  for (const pid_t child : children_of(getpid())) {
    std::istringstream variables(settled_environment_of(child));
    bool ours = variables.str().empty() && program_of(child).empty();
    for (std::string variable; !ours && std::getline(variables, variable, '\0');) ours = variable == mark;
    if (ours) found.push_back(child);
  }
  return found;
}

// A launcher that was killed leaves its ranks behind, and while rank 0 of them lives, the run is locked. Waits until
// they have gone, and in the end kills them. Returns the signal that asks the supervisor to stop meanwhile.
std::optional<int> outlive_last_attempt(const HeldSignals& signals) {
  constexpr int kPatience = 10;  // seconds, before it kills them and after
  for (int second = 0; second < 2 * kPatience; ++second) {
    const std::vector<pid_t> left = left_over();
    if (left.empty()) break;
    if (second == 0) {
      spdlog::warn("waiting for what the training has left behind, process {}; it is killed after {} s",
                   fmt::join(left, ", "), kPatience);
    }
    for (const pid_t process : left) {
      if (second >= kPatience && !environment_of(process).empty()) kill(process, SIGKILL);
    }
    if (const std::optional<int> stop = signals.stop_within(1)) return stop;
  }
  return std::nullopt;
}

// The trainings among processes and what these have started. An mpirun or srun stands for its ranks.
std::vector<pid_t> trainings_among(const std::vector<pid_t>& processes) {
  std::vector<pid_t> found;
  for (const pid_t process : processes) {
    const fs::path program = program_of(process);
    if (program == own_program() || is_mpirun(program) || program.filename() == "srun") {
      found.push_back(process);
    } else {
      const std::vector<pid_t> below = trainings_among(children_of(process));
      found.insert(found.end(), below.begin(), below.end());
    }
  }
  return found;
}

// Where the launcher has ended and passed nothing on, as a shell that runs a script, its training is told here. Daemons
// that it has started as well are left alone. Another signal is passed on too, and ends the wait.
void stop_left_over(int signal, const HeldSignals& signals) {
  std::vector<pid_t> left = trainings_among(left_over());
  if (left.empty()) return;
  spdlog::warn("the launcher has ended; waiting until what it has started, process {}, has ended too",
               fmt::join(left, ", "));
  const auto tell = [](pid_t process, int what) {
    kill(process, gentle(process, "", what));
    kill(process, SIGCONT);  // a stopped one hears no signal before
  };
  std::set<pid_t> told;
  const auto first = std::chrono::steady_clock::now();
  for (; !left.empty(); left = trainings_among(left_over())) {
    // A launcher below may have started another one in the place of one that has ended.
    for (const pid_t process : left) {
      if (told.insert(process).second) tell(process, signal);
    }
    const std::optional<int> again = signals.stop_within(1);
    if (!again || std::chrono::steady_clock::now() - first < std::chrono::seconds(kSameSignal)) continue;
    for (const pid_t process : left) tell(process, *again);
    return;
  }
}

// What is left then holds the lock of the run, or computes on without a supervisor.
void tell_of_left_over() {
  const std::vector<pid_t> left = left_over();
  if (!left.empty()) spdlog::warn("the launcher has ended, and process {} lives on", fmt::join(left, ", "));
}

}  // namespace

void supervise(const SuperviseOptions& options) {
  constexpr int kLongestPause = 30;  // seconds
  const bool resumes = std::ranges::find(options.arguments, "--resume") != options.arguments.end();
  std::vector<std::string> command = command_of(options);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that what loses its launcher becomes a child of this process
  setenv(kMark, std::to_string(getpid()).c_str(), 1);
  const HeldSignals signals;
  const auto terminal = options.launcher.empty() ? std::nullopt : terminal_settings();
  for (int restarts = 0;; ++restarts) {
    if (options.launcher.empty()) command[0] = own_program();  // its file may have been replaced meanwhile
    const pid_t child = start_child(command, signals, gentle(command[0], SIGTERM));
    const End end = wait_for(child, command[0], signals, terminal);
    if (end.stopped != 0) stop_left_over(end.stopped, signals);
    if (end.exit_code() == 0) {
      // An mpirun that is stopped while it starts the ranks ends with 0. If the run was done, --resume will say so.
      if (end.stopped != 0 && !options.launcher.empty()) throw SupervisedEnd{kInterrupted};
      return;
    }
    if (!end.died() || restarts == options.max_restarts) {
      if (end.died()) {
        const std::string tried = restarts > 0 ? ", and has had its " + counted(restarts, "restart") : "";
        spdlog::error("the training {}{}", end_text(end.status), tried);
      }
      if (end.died() || end.stopped != 0) tell_of_left_over();
      throw SupervisedEnd{end.exit_code()};
    }
    const int pause = std::min(1 << std::min(restarts, 5), kLongestPause);
    spdlog::warn("the training {}: restart {} of {} in {} s, from its newest checkpoint", end_text(end.status),
                 restarts + 1, options.max_restarts, pause);
    std::optional<int> stop = signals.stop_within(pause);
    if (!stop) stop = outlive_last_attempt(signals);
    if (stop) {
      stop_left_over(*stop, signals);
      throw SupervisedEnd{kInterrupted};
    }
    if (restarts == 0 && !resumes) command.emplace_back("--resume");
  }
}

}  // namespace dgc
