#include "commands/supervise.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>

#include "tensor/errors.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

enum : int { kUserError = 2, kInterrupted = 130, kNotStarted = 127, kSignal = 128 };

// Holds signals back while it lives, until next() or stop_within() asks for them, so that none is lost between a look
// and a wait.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set_, signal);
    if (!is_ignored(SIGHUP)) sigaddset(&set_, SIGHUP);  // sigwait() would return it even where nohup ignores it
    sigprocmask(SIG_BLOCK, &set_, &old_);
  }
  ~HeldSignals() { sigprocmask(SIG_SETMASK, &old_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  int next() const {  // waits
    int signal = 0;
    sigwait(&set_, &signal);
    return signal;
  }
  // SIGINT, SIGTERM or SIGHUP, if one comes within so many seconds.
  std::optional<int> stop_within(int seconds) const {
    sigset_t stops = set_;
    sigdelset(&stops, SIGCHLD);
    const timespec time{seconds, 0};
    const int signal = sigtimedwait(&stops, nullptr, &time);
    return signal > 0 ? std::optional(signal) : std::nullopt;
  }
  const sigset_t& old() const { return old_; }

 private:
  static bool is_ignored(int signal) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    return now.sa_handler == SIG_IGN;
  }

  sigset_t set_{}, old_{};
};

std::string path_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), X_OK) == 0 ? program : "";
  const char* const variable = std::getenv("PATH");
  std::istringstream folders(variable != nullptr ? variable : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = (fs::path(folder) / program).string();
    if (access(path.c_str(), X_OK) == 0 && !fs::is_directory(path)) return path;
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
  words.push_back(fs::read_symlink("/proc/self/exe").string());
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  return words;
}

pid_t start(const std::vector<std::string>& command, const HeldSignals& signals) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(fmt::format("cannot start {}: {}", command[0], std::strerror(errno)));
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kNotStarted);  // the parent died before prctl() took effect
  setpgid(0, 0);                                // a terminal's Ctrl-C comes to the supervisor alone
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);  // a group in the background must not read from the terminal
  sigprocmask(SIG_SETMASK, &signals.old(), nullptr);
  signal(SIGPIPE, SIG_DFL);  // a launcher expects the default action
  execv(argv[0], argv.data());
  _exit(kNotStarted);
}

struct End {
  int status = 0;        // status of waitpid()
  bool stopped = false;  // the supervisor was asked to stop meanwhile

  int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : kSignal + WTERMSIG(status); }
  // Whether another attempt makes sense: the child is not done, was not given wrong input, and nobody wanted it to end.
  bool died() const {
    const int code = exit_code();
    return !stopped && code != 0 && code != kUserError && code != kInterrupted && code != kNotStarted;
  }
  std::string text() const {
    if (WIFEXITED(status)) return fmt::format("has ended with exit code {}", WEXITSTATUS(status));
    return fmt::format("was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
};

// mpirun kills its processes a moment after SIGINT or SIGTERM, before they have saved. It passes SIGUSR1 on to them.
int gentle(const std::string& program, int signal) {
  const std::string name = fs::path(program).filename().string();
  return name == "mpirun" || name == "mpiexec" || name == "orterun" || name == "prterun" ? SIGUSR1 : signal;
}

End wait_for(pid_t child, const std::string& program, const HeldSignals& signals) {
  End end;
  while (true) {
    const int signal = signals.next();
    if (signal != SIGCHLD) {
      kill(child, end.stopped ? signal : gentle(program, signal));
      end.stopped = true;
    } else if (waitpid(child, &end.status, WNOHANG) == child) {
      return end;
    }
  }
}

}  // namespace

void supervise(const SuperviseOptions& options) {
  constexpr int kLongestPause = 30;  // seconds
  std::vector<std::string> command = command_of(options);
  const HeldSignals signals;
  for (int restarts = 0;; ++restarts) {
    const End end = wait_for(start(command, signals), command[0], signals);
    if (end.exit_code() == 0) return;
    if (!end.died() || restarts == options.max_restarts) {
      if (end.died()) spdlog::error("the training {}, and has had its {} restarts", end.text(), restarts);
      throw SupervisedEnd{end.exit_code()};
    }
    const int pause = std::min(1 << std::min(restarts, 5), kLongestPause);
    spdlog::warn("the training {}: restart {} of {} in {} s, from its newest checkpoint", end.text(), restarts + 1,
                 options.max_restarts, pause);
    if (signals.stop_within(pause)) throw SupervisedEnd{kInterrupted};
    if (restarts == 0 && !options.resume) command.emplace_back("--resume");
  }
}

}  // namespace dgc
