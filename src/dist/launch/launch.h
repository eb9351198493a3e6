#pragma once

#include <functional>
#include <optional>
#include <string>

#include "dist/launch/secret.h"

namespace dgc {

// Where the ranks of a run meet before they can talk: a port of rank 0's machine, or files that all can see.
struct MeetingPoint {
  std::string host;  // a name or an address, IPv4 or IPv6; empty: the point is a file
  int port = 0;
  std::string path;                         // absolute; the beginning of the files' names
  std::string variable = "DGC_RENDEZVOUS";  // the environment variable that gave this point

  bool is_set() const { return !host.empty() || !path.empty(); }
  bool is_file() const { return host.empty(); }
  std::string url() const;  // tcp://host:port or file:///path
  bool operator==(const MeetingPoint&) const = default;
};

// What the launcher says about this process (docs/launch.md).
struct Launch {
  std::string launcher = "alone";  // also "torchrun" (or another that sets its variables), "mpirun", "slurm"
  int rank = 0, size = 1;
  int local_rank = 0;    // rank among those of this machine
  int local_size = 1;    // ranks of this machine; 1 where the launcher does not tell
  std::string run;       // name of the run, so that two runs cannot mix; empty where the launcher gives none
  bool mpi = false;      // MPI connects these ranks
  MeetingPoint meeting;  // used when size > 1; may lack host and path where MPI connects the ranks
  Secret secret;         // of DGC_SECRET_FILE; used where the ranks meet over TCP
};

// Returns the value of a variable; nothing when the variable is unset or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> process_environment(const std::string& name);

// Which rank of how many this process is: the launch without the place where the ranks meet and without their secret.
// Throws UserError that names the variable when variables are missing, malformed or contradict each other.
Launch read_ranks(const Environment& = process_environment);

// The whole launch. Throws UserError likewise.
Launch read_launch(const Environment& = process_environment);

// What to do where NCCL cannot connect the ranks, for a sentence that says why.
std::string without_nccl(const Launch&);

// The number of the GPU that a rank uses: local_rank where the process sees several GPUs, 0 where it sees one, as where
// the launcher shows each rank its own. Throws UserError when there is no GPU, or when there are several and local_rank
// is beyond them.
int choose_gpu(const Launch&, int gpus);

}  // namespace dgc
