#pragma once

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

// dgc as a child process of this one.
namespace dgc {

// Holds signals back while it lives, until next(), next_within() or stop_within() asks for them, so that none is lost
// between a look and a wait: SIGCHLD, and the stops SIGINT, SIGTERM, SIGUSR1 and, unless it is ignored as under nohup,
// SIGHUP.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  int next() const;  // waits
  std::optional<int> next_within(int seconds) const;
  std::optional<int> stop_within(int seconds) const;  // of the stops alone
  const sigset_t& old() const { return old_; }

 private:
  sigset_t set_{}, old_{};
};

// The path of this very program.
std::string own_program();

// Starts a command, whose first word is a path, in a process group of its own, so that a terminal's Ctrl-C comes to
// this process alone. The child gets `death_signal` when this process dies. What the child prints is appended to
// `output`, unless that is empty. A program that cannot be started is told on stderr, and is a child that ends with
// kChildNotStarted. To be called before this process has threads. Throws std::system_error where the system allows no
// other process.
pid_t start_child(const std::vector<std::string>& command, const HeldSignals&, int death_signal,
                  const std::filesystem::path& output = {});

// Sends a signal to such a child. Where the child's group was stopped, it goes on, as nobody hears a signal before.
void send_signal(pid_t child, int signal);

// How a child has ended. `status` comes from waitpid().
int exit_code_of(int status);      // 128 + the signal where a signal ended it
std::string end_text(int status);  // "has ended with exit code 3", "was ended by signal 9 (Killed)"

// Exit codes of children that are not those of dgc itself (ExitCode), as shells have them.
enum ChildCode : int { kChildNotStarted = 127, kChildSignal = 128 };

}  // namespace dgc
