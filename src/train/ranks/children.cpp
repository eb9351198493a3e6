#include "train/ranks/children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace dgc {
namespace {

bool is_ignored(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

std::optional<int> wait_within(const sigset_t& set, int seconds) {
  const timespec time{seconds, 0};
  const int signal = sigtimedwait(&set, nullptr, &time);
  return signal > 0 ? std::optional(signal) : std::nullopt;
}

}  // namespace

HeldSignals::HeldSignals() {
  sigemptyset(&set_);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&set_, signal);
  if (!is_ignored(SIGHUP)) sigaddset(&set_, SIGHUP);  // sigwait() would return it even where nohup ignores it
  // Some programs ignore it and leave it so to those they start. Then no child could be waited for.
  signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &set_, &old_);
}

HeldSignals::~HeldSignals() { sigprocmask(SIG_SETMASK, &old_, nullptr); }

int HeldSignals::next() const {
  int signal = 0;
  sigwait(&set_, &signal);
  return signal;
}

std::optional<int> HeldSignals::next_within(int seconds) const { return wait_within(set_, seconds); }

std::optional<int> HeldSignals::stop_within(int seconds) const {
  sigset_t stops = set_;
  sigdelset(&stops, SIGCHLD);
  return wait_within(stops, seconds);
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

pid_t start_child(const std::vector<std::string>& command, const HeldSignals& signals, int death_signal,
                  const std::filesystem::path& output) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "cannot start " + command[0]);
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, death_signal);
  if (getppid() != parent) _exit(kChildNotStarted);  // the parent died before prctl() took effect
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing > STDIN_FILENO) {  // a group in the background must not read from the terminal
    dup2(nothing, STDIN_FILENO);
    close(nothing);
  }
  if (!output.empty()) {
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0) _exit(kChildNotStarted);
  }
  sigprocmask(SIG_SETMASK, &signals.old(), nullptr);
  signal(SIGPIPE, SIG_DFL);  // a launcher expects the default action
  signal(SIGTTOU, SIG_IGN);  // a group in the background may print, also where `stty tostop` was called
  // Where the program's file has been replaced meanwhile, as by a build, this very program is still to be had.
  const bool replaced = command[0].ends_with(" (deleted)") && command[0] == own_program();
  execv(replaced ? "/proc/self/exe" : argv[0], argv.data());
  dprintf(STDERR_FILENO, "error: %s cannot be started: %s\n", argv[0], std::strerror(errno));
  _exit(kChildNotStarted);
}

void send_signal(pid_t child, int signal) {
  kill(child, signal);
  kill(-child, SIGCONT);
}

int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : kChildSignal + WTERMSIG(status); }

std::string end_text(int status) {
  if (WIFEXITED(status)) return fmt::format("has ended with exit code {}", WEXITSTATUS(status));
  return fmt::format("was ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

}  // namespace dgc
