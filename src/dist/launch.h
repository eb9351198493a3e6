#pragma once

#include <functional>
#include <optional>
#include <string>

namespace dgc {

// Where the ranks of a run meet before they can talk: a port of rank 0's machine, or files that all can see.
struct MeetingPoint {
  std::string host;  // a name or an address, IPv4 or IPv6; empty: a file
  int port = 0;
  std::string path;                         // absolute; only the beginning of the files' names
  std::string variable = "DGC_RENDEZVOUS";  // that says so

  bool is_set() const { return !host.empty() || !path.empty(); }
  bool is_file() const { return host.empty(); }
  std::string url() const;  // tcp://host:port or file:///path
  bool operator==(const MeetingPoint&) const = default;
};

// What whoever started this process says about it (docs/launch.md).
struct Launch {
  std::string launcher = "alone";  // "torchrun" (or whoever sets its variables), "mpirun", "slurm"
  int rank = 0, size = 1;
  int local_rank = 0;    // among the ranks of this machine
  int local_size = 1;    // how many these are; 1 where the launcher does not tell
  std::string run;       // differs from one run to the next where the launcher tells, so that they cannot mix
  bool mpi = false;      // MPI connects these ranks
  MeetingPoint meeting;  // when size > 1; may lack host and path where MPI connects them
};

// The value of a variable; nothing when it is unset or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

// Throws UserError, which names the variable, when some are missing, malformed or contradict each other.
Launch read_launch(const Environment& = process_environment);

// Which of this machine's GPUs a rank uses: its own where all can be seen, the only one where the launcher shows each
// rank only its own. Throws UserError when there are more ranks than GPUs.
int choose_gpu(const Launch&, int gpus);

}  // namespace dgc
