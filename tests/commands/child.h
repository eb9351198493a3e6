#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "paths.h"

// The dgc program as a child process.
namespace dgc::test {

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Runs `dgc ARGUMENTS`, or another program on PATH, in a folder; standard output and error go to files there.
class Child {
 public:
  Child(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
        const std::string& program = DGC_BINARY)
      : out_(folder / "stdout.txt"), err_(folder / "stderr.txt") {
    std::vector<std::string> words = {program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    process_ = fork();
    if (process_ != 0) return;
    const bool ready = chdir(folder.c_str()) == 0 && freopen(out_.c_str(), "w", stdout) != nullptr &&
                       freopen(err_.c_str(), "w", stderr) != nullptr;
    if (ready) execvp(argv[0], argv.data());
    _exit(99);
  }
  ~Child() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      wait();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return process_; }
  void send(int signal) const { kill(process_, signal); }
  // SIGSTOP; true once all threads have stopped, false where the process has ended before.
  bool stop() const {
    kill(process_, SIGSTOP);
    siginfo_t change{};
    return waitid(P_PID, static_cast<id_t>(process_), &change, WSTOPPED | WEXITED | WNOWAIT) == 0 &&
           change.si_code == CLD_STOPPED;
  }

  // The exit code; 128 + the signal that ended it.
  int wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string out() const { return text_of(out_); }
  std::string err() const { return text_of(err_); }

 private:
  std::filesystem::path out_, err_;
  pid_t process_ = -1;
};

// Until `condition` holds; false after a minute.
template <typename Condition>
bool wait_until(const Condition& condition) {
  for (int i = 0; i < 60'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace dgc::test
