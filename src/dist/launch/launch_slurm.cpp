#include "dist/launch/launch_slurm.h"

#include <limits>

#include "dist/launch/launch_variables.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

// The ports lie below those that Linux gives to outgoing connections (32768 and up).
constexpr int64_t kFirstPort = 20000, kPorts = 12000, kStepsApart = 16;

int64_t slurm_number(const Environment& get, const char* variable, int64_t high) {
  return required_number(get, variable, 0, high, "this looks like a task of a SLURM step");
}

}  // namespace

std::optional<Launch> slurm_launch(const Environment& get) {
  if (!get("SLURM_STEP_NODELIST") && !get("SLURM_STEP_NUM_TASKS")) return {};
  Launch launch;
  launch.launcher = "slurm";
  // An interactive step of one task may lie in an allocation with a larger SLURM_NTASKS.
  const char* size = get("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  launch.size = static_cast<int>(slurm_number(get, size, kMaxRanks));
  launch.rank = static_cast<int>(slurm_number(get, "SLURM_PROCID", kMaxRanks));
  launch.local_rank = static_cast<int>(slurm_number(get, "SLURM_LOCALID", kMaxRanks));
  check_ranks(launch, "SLURM_PROCID", size, "SLURM_LOCALID");
  const auto tasks = get("SLURM_STEP_TASKS_PER_NODE");
  if (tasks && get("SLURM_NODEID"))
    launch.local_size = tasks_on_node(*tasks, slurm_number(get, "SLURM_NODEID", kMaxRanks));
  if (const auto job = get("SLURM_JOB_ID")) {
    launch.run = fmt::format("slurm {}.{} attempt {}", *job, get("SLURM_STEP_ID").value_or("0"),
                             get("SLURM_RESTART_COUNT").value_or("0"));
  }
  return launch;
}

MeetingPoint slurm_meeting_point(const Environment& get) {
  MeetingPoint point;
  point.variable = "SLURM_STEP_NODELIST";
  if (const auto nodes = get("SLURM_STEP_NODELIST")) {
    const FirstHost first = first_host(*nodes);
    point.host = first.only ? "127.0.0.1" : first.name;  // one machine can do without a name service
  } else if (const auto address = get("SLURM_LAUNCH_NODE_IPADDR")) {
    point.host = *address;
  }
  if (point.host.empty()) {
    throw_user_error(
        "SLURM_STEP_NODELIST does not say where rank 0 is: set DGC_RENDEZVOUS=tcp://host:port to a port of its "
        "machine");
  }
  if (const auto ports = get("SLURM_STEP_RESV_PORTS")) {  // "12000-12003" or "12000,12005"
    const std::string first = ports->substr(0, ports->find_first_of("-,"));
    point.port = static_cast<int>(environment_number("SLURM_STEP_RESV_PORTS", first, 1, 65535));
    return point;
  }
  const int64_t job = slurm_number(get, "SLURM_JOB_ID", std::numeric_limits<uint32_t>::max());
  const int64_t step =
      get("SLURM_STEP_ID") ? slurm_number(get, "SLURM_STEP_ID", std::numeric_limits<uint32_t>::max()) : 0;
  point.port = static_cast<int>(kFirstPort + (job * kStepsApart + step) % kPorts);
  return point;
}

int tasks_on_node(const std::string& list, int64_t node) {
  constexpr const char* kVariable = "SLURM_STEP_TASKS_PER_NODE";
  for (size_t at = 0; at < list.size();) {
    const std::string entry = list.substr(at, list.find(',', at) - at);
    at += entry.size() + 1;
    const size_t times = entry.find("(x");
    int64_t nodes = 1;
    if (times != std::string::npos) {
      nodes = environment_number(kVariable, entry.substr(times + 2, entry.size() - times - 3), 1, kMaxRanks);
    }
    if (node < nodes) return static_cast<int>(environment_number(kVariable, entry.substr(0, times), 1, kMaxRanks));
    node -= nodes;
  }
  throw_user_error("{}={} does not say how many ranks run on this node", kVariable, list);
}

FirstHost first_host(const std::string& nodelist) {
  FirstHost first{"", true};
  size_t at = 0;
  while (at < nodelist.size() && nodelist[at] != ',') {
    if (nodelist[at] != '[') {
      first.name += nodelist[at++];
      continue;
    }
    const size_t close = nodelist.find(']', at);
    const size_t end = nodelist.find_first_of(",-]", at);
    if (close == std::string::npos) throw_user_error("SLURM_STEP_NODELIST={} lacks a closing bracket", nodelist);
    first.name += nodelist.substr(at + 1, end - at - 1);
    first.only = first.only && end == close;
    at = close + 1;
  }
  first.only = first.only && at == nodelist.size();
  return first;
}

}  // namespace dgc
