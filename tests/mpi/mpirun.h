#pragma once

#include <fmt/core.h>
#include <stdlib.h>

#include <algorithm>
#include <catch.hpp>
#include <string>
#include <vector>

#include "dist/communicator.h"
#include "tests/commands/program.h"

namespace dgc::test {

inline bool on_path(const std::string& program) {
  const std::string path = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  for (size_t at = 0; at < path.size();) {
    const std::string folder = path.substr(at, path.find(':', at) - at);
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
    at += folder.size() + 1;
  }
  return false;
}

// Whether programs can be started with mpirun here; says why where they cannot.
inline bool have_mpirun() {
  if (mpi_description().empty()) {
    WARN("skipped: MPI is not in this build");
    return false;
  }
  if (!on_path("mpirun")) {
    WARN("skipped: there is no mpirun on PATH");
    return false;
  }
  return true;
}

// mpirun ARGUMENTS in a folder. Tests run as root in containers, with more ranks than cores. What Open MPI allocates
// and never frees is not ours: the address sanitizer does not look for leaks in its processes.
class Mpirun {
 public:
  Mpirun(const std::filesystem::path& folder, std::vector<std::string> arguments)
      : child_(folder, with_settings(std::move(arguments)), "mpirun") {}

  void send(int signal) const { child_.send(signal); }
  // The processes that it has started on this machine, in the order of their ranks.
  std::vector<pid_t> ranks() const {
    std::ifstream list(fmt::format("/proc/{0}/task/{0}/children", child_.pid()));
    return {std::istream_iterator<pid_t>(list), {}};
  }
  Result wait() {
    const int code = child_.wait();
    return {code, child_.out(), child_.err()};
  }
  std::string err() const { return child_.err(); }

 private:
  static std::vector<std::string> with_settings(std::vector<std::string> arguments) {
    for (const char* variable : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) setenv(variable, "1", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    const std::vector<std::string> settings = {"--oversubscribe", "--bind-to", "none", "--timeout", "300"};
    arguments.insert(arguments.begin(), settings.begin(), settings.end());
    return arguments;
  }

  Child child_;
};

// mpirun ends with the exit code of the rank that failed first. Open MPI 4.1 itself crashes at its end once in some
// hundred times (in PMIx_server_finalize), and then it tells nothing.
inline void check_code(const Result& result, int expected) {
  if (result.err.find("PMIx_server_finalize") != std::string::npos) {
    WARN("mpirun itself crashed, and its exit code " << result.code << " is not the run's");
    return;
  }
  CHECK(result.code == expected);
}

// What the program itself says is wrong; mpirun's own words are other lines.
inline std::vector<std::string> errors_in(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with("error: ")) lines.push_back(line);
    at += line.size() + 1;
  }
  return lines;
}

}  // namespace dgc::test
